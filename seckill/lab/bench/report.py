"""The report of a benchmark as one HTML file."""

from collections.abc import Mapping
from typing import Any

from seckill.lab.bench.goals import judged
from seckill.lab.reports.charts import Bar, Part, Row, chart
from seckill.lab.reports.page import Tone, cell, page, table

RATES = {
    "http_ceiling": ("the HTTP server alone", "available"),
    "native_http": ("a compiled HTTP server alone", "available"),
    "gate_ceiling": ("the script alone", "available"),
    "refuse": ("refused (sold out)", "returning"),
    "accept": ("accepted", "queued"),
    "accept_at_1m": ("accepted, 1 M buyers before", "queued"),
    "persist": ("persisted", "unpaid"),
    "join": ("joined a draw, persisted", "unpaid"),
    "gateway": ("nginx with a script, accepted", "paid"),
    "plain_port": ("plain service, accepted", "paid"),
    "plain_persist": ("plain service, persisted", "paid"),
}
LOOKS = {"available": "limits", "returning": "refused", "queued": "accepted", "unpaid": "persisted", "paid": "others"}


def verdict(found: Mapping[str, Any]) -> str:
    goals = [reached for *_, reached in judged(found)]
    return (
        f"{found['accept']:,.0f} orders a second accepted, {found['persist']:,.0f} persisted; "
        f"{sum(goals)} of {len(goals)} goals reached."
    )


def report(found: Mapping[str, Any]) -> str:
    rates = [
        Row(label, [Bar([Part(LOOKS[look], look, found[name])], f"{found[name]:,.0f}")])
        for name, (label, look) in RATES.items()
        if found[name] is not None
    ]
    compared = [
        [
            cell(name),
            cell(f"{value:g}", look="" if reached else "bad"),
            cell(goal),
            cell("reached" if reached else "missed"),
        ]
        for name, value, goal, reached in judged(found)
    ]
    run = found["run"]
    names = list(run["rounds"][0])
    rounds = [
        [cell(number), *(cell("–" if round_[name] is None else f"{round_[name]:,.1f}") for name in names)]
        for number, round_ in enumerate(run["rounds"], 1)
    ]
    return page(
        title="seckill bench",
        verdict=verdict(found),
        about=f"Ledger: {run['ledger']}. Answers: half within {found['p50_ms']:g} ms, 99 % within "
        f"{found['p99_ms']:g} ms. {found['mean_batch']:g} claims in one call to the gate.",
        sections=[
            chart("A second", rates),
            "<h2>Goals</h2>",
            table(["goal", "measured", "asked for", ""], compared),
            "<h2>CPU time of an accepted claim until it is written, in µs</h2>",
            table([*found["cpu_us"]], [[cell(f"{value:g}") for value in found["cpu_us"].values()]]),
            "<h2>Less and more than it can take</h2>",
            table(
                ["offered a second", "accepted", "persisted", "unwritten at the end", "99 % within"],
                [
                    [cell(f"{each[name]:,.0f}") for name in ("offered", "accepted", "persisted", "backlog")]
                    + [cell(f"{each['p99_ms']:g} ms")]
                    for each in found["overload"]
                ],
            ),
            "<h2>Confirmed by the gate, and by the ledger</h2>",
            table(
                ["confirm", "accepted a second", "half within", "99 % within"],
                [
                    [cell(where), cell(f"{each['accept']:,.0f}")]
                    + [cell(f"{each[share]:g} ms") for share in ("p50_ms", "p99_ms")]
                    for where, each in found["confirm"].items()
                ],
            ),
            "<h2>Rounds</h2>",
            table(["round", *names], rounds),
        ],
        method=method(run),
        command=run["command"],
        tone=Tone.GOOD if all(reached for *_, reached in judged(found)) else Tone.NEUTRAL,
    )


def method(run: Mapping[str, Any]) -> list[str]:
    machine = run["machine"]
    return [
        f"Everything on one machine: {machine['cores']} cores, {machine['system']}, Python {machine['python']}. "
        "Servers, processes and the load generator compete for them, so ratios say more than rates.",
        f"{len(run['rounds'])} rounds; in each, one after the other for {run['seconds']} s: the HTTP server with a "
        "handler that only answers, the admission script in batches of 100 without HTTP, the tutorials' last step, the "
        "engine, the engine sold out, a draw of the engine that is joined. Each on fresh servers. Medians.",
        f"Load: {run['generator']}, {run['connections']} connections, distinct buyers, each with a signed token of "
        "its own. The engine: one API process, worker and keeper, Valkey that syncs before every answer.",
        f"The tutorials' last step: {run['plain_framework']}, tokens decoded with PyJWT, one script call a request, "
        "XADD in it, a consumer that "
        "takes one entry a time and writes one transaction an order. The same Valkey and database.",
        "native_http is granian, one process, its own interface; gateway is nginx with Lua, one script call a request, "
        "the same Valkey; it checks no signature and writes to no database.",
        "cpu_us: of all processes during the sustained load and until all of it is written, over what was accepted. A "
        "ledger that is a file is written by the worker.",
        f"overload: so many people a second for {run['overload_s']:g} s each, whatever the engine does; who finds all "
        "connections taken waits for one, and the time is taken from when it is sent.",
        "start_s, memory_mb: seckill up on an empty folder, from the command to the first accepted claim, and the "
        "memory of all its processes then, Valkey included; what they share counts once.",
        f"persist and drain_s: from a load of {run['sustained']['seconds']} s (accepted meanwhile: "
        f"{run['sustained']['accept']:,.0f} a second). persist: written when the load ended, over its duration.",
        "confirm: the same load, in turns, on a sale that says yes when the gate has the order and on one that says it "
        "when the ledger has it.",
        "accept_at_1m: a round that has a million buyers already, in turns with new ones."
        if run["accept_and_at_1m"]
        else "Quick: once, for a short time, and without a round that has a million buyers already.",
    ]
