"""Makes the report of a run as one HTML file."""

from collections.abc import Mapping
from typing import Any

from seckill.audit.report import Verdict
from seckill.lab.chaos.document import verdict
from seckill.lab.chaos.schedule import KINDS
from seckill.lab.reports.page import Tone, cell, page, table
from seckill.lab.reports.timeline import Span, TimelineLine, timeline

Found = Mapping[str, Any]

TONES = {Verdict.HOLDS: Tone.GOOD, Verdict.BROKEN: Tone.BAD, Verdict.UNKNOWN: Tone.NEUTRAL}
LAST_KILL = "every process, once more"


def report(run: Found) -> str:
    return page(
        title="seckill chaos",
        verdict=verdict(run),
        about=f"{'; '.join(run['servers'].values())}. Seed {run['seed']}, {run['minutes']:g} minutes. "
        f"{run['declared_lost']} orders were lost with the gate's memory, as declared; {run['confirmed']} "
        f"were confirmed by the ledger, none of which may be lost; {run['failed_and_told']} "
        "failed, and their buyers were told.",
        sections=[
            _chart(run),
            "<h2>Checks</h2>",
            _checks(run),
            "<h2>Faults by kind</h2>",
            _kinds(run),
            "<h2>Windows</h2>",
            _windows(run),
            "<h2>Recoveries</h2>",
            _recoveries(run),
            "<h2>Rounds</h2>",
            _rounds(run),
            "<h2>Every fault</h2>",
            _faults(run),
        ],
        method=method(run),
        command=run["command"],
        tone=TONES[Verdict(run["verdict"])],
    )


def _chart(run: Found) -> str:
    accepted = [(second + 0.5, float(count)) for second, count in enumerate(run["series"]["accepted"])]
    backlog = [(float(at_s), float(waiting)) for at_s, waiting in run["series"]["backlog"]]
    spans = [Span(fault["at_s"], fault["ended_s"], f"{fault['kind']} {fault['target']}") for fault in run["faults"]]
    if run["healing"]:
        began_s, ended_s = run["healing"]
        spans.append(Span(began_s, ended_s, f"kill {LAST_KILL}"))
    return timeline(
        "What happened",
        [
            TimelineLine("accepted orders a second", "paid", accepted),
            TimelineLine("orders in the queue", "queued", backlog),
        ],
        spans,
    )


def _checks(run: Found) -> str:
    rows = [
        [
            cell(check["name"]),
            cell(check["verdict"], look="" if check["verdict"] == "holds" else "bad"),
            cell(check["count"], look="bad" if check["count"] else ""),
            cell(" · ".join([check["says"], *check["named"]]), look="text"),
        ]
        for check in run["checks"]
    ]
    return table(["check", "verdict", "wrong", "what"], rows, text=["what"])


def _kinds(run: Found) -> str:
    rows = []
    for kind, about in KINDS.items():
        done = [fault for fault in run["faults"] if fault["kind"] == kind]
        if done:
            hit = sum(bool(fault["bit"]) for fault in done)
            rows.append([cell(kind), cell(len(done)), cell(hit), cell(about.says, look="text")])
    return table(["fault", "times", "hit", "what"], rows, text=["what"])


def _windows(run: Found) -> str:
    required, fired = run["windows"]["required"], run["windows"]["fired"]
    names = [*required, *(name for name in fired if name not in required)]
    rows = [
        [
            cell(name),
            cell(fired.get(name, 0), look="bad" if name in required and not fired.get(name) else ""),
            cell("asked for" if name in required else ""),
        ]
        for name in names
    ]
    return table(["failpoint", "hit", ""], rows)


def _recoveries(run: Found) -> str:
    rows = [
        [
            cell(found["what"]),
            cell(f"{found['at_s']:.1f} s"),
            cell(
                f"{found['took_s']:.2f} s", look="bad" if found["calm"] and found["took_s"] > found["within_s"] else ""
            ),
            cell(f"{found['within_s']:g} s"),
            cell("judged" if found["calm"] else "other faults at the time", look="text"),
        ]
        for found in run["recoveries"]
    ]
    return table(["what", "at", "took", "at most", ""], rows)


def _rounds(run: Found) -> str:
    rows = [
        [cell(found["sale"]), *(cell(found[name]) for name in ("round", "total", "available", "sold"))]
        for found in run["rounds"]
    ]
    return table(["sale", "round", "total", "available", "sold"], rows)


def _faults(run: Found) -> str:
    rows = [
        [
            cell(f"{fault['at_s']:.1f} s"),
            cell(f"{fault['ended_s'] - fault['at_s']:.1f} s"),
            cell(fault["kind"]),
            cell(fault["target"]),
            cell(fault["bit"] or "did nothing", look="text"),
        ]
        for fault in run["faults"]
    ]
    if run["healing"]:
        began_s, ended_s = run["healing"]
        what = "the faults are over: all are taken back"
        lasted = f"{ended_s - began_s:.1f} s"
        rows.append([cell(f"{began_s:.1f} s"), cell(lasted), cell("kill"), cell(LAST_KILL), cell(what, look="text")])
    return table(["at", "for", "fault", "target", "what shows it"], rows, text=["what shows it"])


def method(run: Found) -> list[str]:
    machine = run["machine"]
    return [
        f"Everything on one machine: {machine['cores']} cores, {machine['system']}, Python {machine['python']}. Two "
        "processes each of API, worker and keeper, as production runs them, each role behind proxies of its own.",
        "Buyers claim, repeat with and without a key, hang up and ask again, pay, cancel and forget. Every 202 is kept "
        "and looked up in the ledger in the end.",
        "First two drills with nothing else going on. Then every process is armed with failpoints, others in each of "
        "its lives, and the faults come as the seed says. The auditor reads every second.",
        "In the end all faults are taken back, every process is killed once more, buyers who pay take what is left, "
        "and when all is at rest the books are compared with what buyers were told.",
        "A shop follows the feed of events from whichever API process answers, and has a webhook whose receiver "
        "refuses, hangs up and is slow at times. Both are compared with the ledger in the end. That a webhook arrives "
        "more than once is allowed, and counted.",
        "Lost as declared: when the gate loses its memory, the orders in its streams at that very instant go with it. "
        "They are read in the same transaction, and no others may be missing.",
        *run["notes"],
    ]
