"""The one report over all legs: as a document, and as one HTML file that is made from it."""

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from seckill import __version__
from seckill.lab.reports.charts import Bar, Part, Row, chart
from seckill.lab.reports.page import Tone, cell, page, table
from tests.endure.legs import SET_UPS, Result, totals

Found = Mapping[str, Any]
WORDS = {
    "holds": "Everything held so far.",
    "broken": "Something broke.",
    "unknown": "Nothing broke, and of some legs it could not be told.",
}
TONES = {"holds": Tone.GOOD, "broken": Tone.BAD, "unknown": Tone.NEUTRAL}


def document(results: Sequence[Result], admissions: int, faults: int) -> dict[str, Any]:
    verdicts = {result.verdict for result in results}
    verdict = next((word for word in ("broken", "unknown") if word in verdicts), "holds")
    admitted, hit = totals(results)
    return {
        "verdict": verdict,
        "admissions": admitted,
        "faults": hit,
        "failpoints": sum(result.failpoints for result in results),
        "wanted": {"admissions": admissions, "faults": faults},
        "version": __version__,
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "set_ups": [_set_up(results, ledger, gate) for ledger, gate in SET_UPS],
        "legs": [result.document() for result in results],
    }


def _set_up(results: Sequence[Result], ledger: str, gate: str) -> dict[str, Any]:
    of_it = [result for result in results if (result.leg.ledger, result.leg.gate) == (ledger, gate)]
    admitted, hit = totals(of_it)
    return {
        "ledger": ledger,
        "gate": gate,
        "legs": len(of_it),
        "held": sum(result.verdict == "holds" for result in of_it),
        "admissions": admitted,
        "faults": hit,
        "hours": round(sum(result.took_s for result in of_it) / 3600, 2),
    }


def report(found: Found) -> str:
    enough = all(found[name] >= found["wanted"][name] for name in ("admissions", "faults"))
    word = WORDS[found["verdict"]].replace(" so far", "") if enough else WORDS[found["verdict"]]
    return page(
        title="seckill endure",
        verdict=f"{word} {found['admissions']:,} admissions, {found['faults']:,} faults, "
        f"{found['failpoints']:,} failpoints, in {len(found['legs'])} legs.",
        about=f"Wanted: {found['wanted']['admissions']:,} admissions and {found['wanted']['faults']:,} faults. "
        f"seckill {found['version']}.",
        sections=[
            _picture(found, "admissions", "paid"),
            _picture(found, "faults", "dead"),
            "<h2>Set-ups</h2>",
            _set_ups(found),
            "<h2>Legs</h2>",
            _legs(found),
        ],
        method=_method(found),
        command="make endure",
        tone=TONES[found["verdict"]],
    )


def _picture(found: Found, name: str, look: str) -> str:
    rows = [
        Row(f"{each['ledger']}, {each['gate']}", [Bar([Part(name, look, each[name])], f"{each[name]:,}")])
        for each in found["set_ups"]
    ]
    return chart(f"{name.capitalize()} by set-up", rows)


def _set_ups(found: Found) -> str:
    columns = ["set-up", "legs", "held", "admissions", "faults", "hours"]
    rows = [
        [
            cell(f"{each['ledger']}, {each['gate']}"),
            cell(each["legs"]),
            cell(each["held"], look="" if each["held"] == each["legs"] else "bad"),
            cell(f"{each['admissions']:,}"),
            cell(each["faults"]),
            cell(each["hours"]),
        ]
        for each in found["set_ups"]
    ]
    return table(columns, rows)


def _legs(found: Found) -> str:
    columns = ["leg", "seed", "verdict", "admissions", "faults", "failpoints", "minutes", "began", "what"]
    rows = [
        [
            cell(f"{one['leg']['number']} {one['leg']['kind']} {one['leg']['ledger']} {one['leg']['gate']}"),
            cell(one["leg"]["seed"]),
            cell(one["verdict"], look="" if one["verdict"] == "holds" else "bad"),
            cell(f"{one['admissions']:,}"),
            cell(one["faults"]),
            cell(one["failpoints"]),
            cell(f"{one['took_s'] / 60:.1f}"),
            cell(one["began"]),
            cell(" · ".join(one["wrong"]), look="text"),
        ]
        for one in found["legs"]
    ]
    return table(columns, rows, text=["what"])


def _method(found: Found) -> list[str]:
    machine = found["machine"]
    return [
        f"Everything on one machine: {machine['cores']} cores, {machine['system']}, Python {machine['python']}.",
        "A leg of the kind `chaos` is a run of `seckill chaos` with its seed: a crowd that buys, pays, cancels and "
        "forgets, every kind of fault, failpoints, and all its checks.",
        "A leg of the kind `rush` has a crowd that only claims, as fast as it is answered, on the same servers and "
        "roles, with the faults that take no memory from the gate. Every 202 is looked up in the ledger, every row "
        "was claimed by its buyer, and in the end the auditor reads every order.",
        "Only faults are counted that did something. A leg that was interrupted is not counted; it is run again.",
    ]
