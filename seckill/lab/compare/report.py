"""The report of a run as one HTML file."""

from collections.abc import Mapping
from typing import Any

from seckill.lab.compare.document import crowd_of, method, verdict
from seckill.lab.reports.charts import Bar, Part, Row, chart
from seckill.lab.reports.page import cell, page, table

COUNTS = ("oversold", "undersold", "duplicates", "lost")
SPEEDS = {
    "accepted_per_s": "accepted/s",
    "persisted_per_s": "persisted/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "drain_s": "drain s",
}

DOOR_FIGURES = {
    "bot_units": "bot's units",
    "people_units": "people's",
    "person_chance": "a person's chance",
    "bot_chance": "a bot name's",
    "earlier_first": "earlier first",
    "faster_first": "faster first",
    "bot_core_s": "bot's core s",
}
SHARES = ("person_chance", "bot_chance", "earlier_first", "faster_first")

Found = Mapping[str, Any]


def report(run: Mapping[str, Any]) -> str:
    tried = [found for found in run["strategies"] if not found["not_run"]]
    timed = [found for found in tried if found["speed"]]
    killed = [found for found in tried if found["crash"]]
    sections = []
    if tried:
        sections += [
            chart("Units sold", [_units(found, run["stock"]) for found in tried], mark=("the stock", run["stock"])),
            chart("Accepted orders that were lost", [_lost(found) for found in tried]),
        ]
    if timed:
        sections += [
            chart("Orders a second", [_rates(found) for found in timed]),
            chart("Milliseconds from press to answer", [_waits(found) for found in timed]),
        ]
    if run["doors"]:
        sections += [
            chart("Who gets the units, with a bot in the crowd", [_by_whom(door) for door in run["doors"]]),
            chart("The chance of each", [_chances(door) for door in run["doors"]]),
            "<h2>With a bot in the crowd</h2>",
            _doors(run),
        ]
    if run["strategies"]:
        sections += ["<h2>All figures</h2>", _counts(run)]
    if killed:
        sections += ["<h2>When a process is killed in the middle</h2>", _kills(killed)]
    return page(
        title="seckill compare",
        verdict=verdict(run),
        about=f"{crowd_of(run)} for {run['stock']} units, on {'; '.join(run['servers'].values())}.",
        sections=sections,
        method=method(run),
        command=run["command"],
    )


def _units(found: Found, stock: int) -> Row:
    count = found["count"]
    flaws = [
        f"{count[name]} {word}"
        for name, word in (("oversold", "over"), ("undersold", "left"), ("duplicates", "twice"))
        if count[name]
    ]
    note = ", ".join(flaws) if flaws else f"{count['persisted']}, exact"
    rightly = max(0, min(count["persisted"], stock) - count["duplicates"])
    parts = [
        Part("sold", "paid", rightly),
        Part("sold twice to one person", "returning", min(count["persisted"], stock) - rightly),
        Part("oversold", "dead", count["oversold"]),
        Part("left unsold", "missing", count["undersold"]),
    ]
    return Row(found["strategy"], [Bar(parts, note)])


def _lost(found: Found) -> Row:
    calm = found["count"]["lost"]
    killed = found["crash"]["count"]["lost"] if found["crash"] else 0
    parts = [Part("without any fault", "queued", calm), Part("when a process was killed", "dead", killed)]
    return Row(found["strategy"], [Bar(parts, str(calm + killed))])


def _rates(found: Found) -> Row:
    speed = found["speed"]
    return Row(
        found["strategy"],
        [
            Bar([Part("accepted", "queued", speed["accepted_per_s"])], f"{speed['accepted_per_s']:,.0f} accepted"),
            Bar([Part("persisted", "unpaid", speed["persisted_per_s"])], f"{speed['persisted_per_s']:,.0f} persisted"),
        ],
    )


def _waits(found: Found) -> Row:
    p50_ms, p99_ms = found["speed"]["p50_ms"], found["speed"]["p99_ms"]
    return Row(
        found["strategy"],
        [
            Bar([Part("half of all within", "available", p50_ms)], f"{p50_ms:,.1f} half within"),
            Bar([Part("99 % within", "unpaid", p99_ms)], f"{p99_ms:,.1f} 99 % within"),
        ],
    )


def _counts(run: Mapping[str, Any]) -> str:
    rows = []
    for found in run["strategies"]:
        if found["not_run"]:
            rows.append([cell(found["strategy"]), cell(f"not run: {found['not_run']}", look="text", span=12)])
            continue
        count, speed = found["count"], found["speed"]
        row = [cell(found["strategy"]), *(cell(count[name]) for name in ("offered", "accepted", "persisted"))]
        row += [cell(count[name], look="bad" if count[name] else "") for name in COUNTS]
        row += [cell(f"{speed[name]:,.1f}" if speed else "–") for name in SPEEDS]
        rows.append(row)
    return table(["design", "offered", "accepted", "persisted", *COUNTS, *SPEEDS.values()], rows)


def _kills(killed: list[Found]) -> str:
    columns = ["design", "killed", "accepted before", "persisted before", "accepted", "persisted", *COUNTS]
    rows = []
    for found in killed:
        crash = found["crash"]
        count = crash["count"]
        row = [cell(found["strategy"]), cell(crash["killed"]), cell(crash["accepted_before"])]
        row += [cell(crash["persisted_before"]), cell(count["accepted"]), cell(count["persisted"])]
        rows.append([*row, *(cell(count[name], look="bad" if count[name] else "") for name in COUNTS)])
    return table(columns, rows)


def door_figure(door: Found, name: str) -> str:
    value = door[name] if name in door else door["fairness"][name]
    if value is None:
        return "–"
    return f"{100 * value:.0f} %" if name in SHARES else f"{value:,}"


def _by_whom(door: Found) -> Row:
    fair = door["fairness"]
    parts = [Part("people", "paid", fair["people_units"]), Part("the bot", "dead", fair["bot_units"])]
    return Row(door["door"], [Bar(parts, f"{fair['people_units']} people, {fair['bot_units']} bot")])


def _chances(door: Found) -> Row:
    fair = door["fairness"]
    person, name = 100 * fair["person_chance"], 100 * fair["bot_chance"]
    return Row(
        door["door"],
        [
            Bar([Part("of a person, %", "paid", person)], f"{person:.0f} % a person"),
            Bar([Part("of a name of the bot, %", "dead", name)], f"{name:.0f} % a name of the bot"),
        ],
    )


def _doors(run: Mapping[str, Any]) -> str:
    rows = [
        [
            cell(door["door"]),
            cell(door["summary"], look="text"),
            *(cell(door_figure(door, name)) for name in DOOR_FIGURES),
        ]
        for door in run["doors"]
    ]
    return table(["door", "who gets a unit", *DOOR_FIGURES.values()], rows)
