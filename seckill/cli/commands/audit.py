"""Checks whether what is promised holds now."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.markup import escape

from seckill.audit import Auditor, Report, Verdict, open_auditor
from seckill.audit.document import Teller
from seckill.audit.report import InvariantResult, Units
from seckill.cli.async_command import run, until_stopped
from seckill.cli.command_settings import environment, with_data_folder
from seckill.cli.exit_codes import EXIT_BROKEN, EXIT_HOLDS, EXIT_UNSURE
from seckill.cli.output import console, print_json, table
from seckill.cli.parameters import AsJson
from seckill.loops import Stop

EVERY_S = 1.0
EXIT = {Verdict.HOLDS: EXIT_HOLDS, Verdict.BROKEN: EXIT_BROKEN, Verdict.UNKNOWN: EXIT_UNSURE}
WORDS = {Verdict.HOLDS: "holds", Verdict.BROKEN: "BROKEN", Verdict.UNKNOWN: "could not tell"}
COLOURS = {Verdict.HOLDS: "green", Verdict.BROKEN: "red", Verdict.UNKNOWN: "yellow"}
ROUNDS_MAX = 5  # that are named in a line
NAMED_MAX = 20  # that are named for each invariant; --json names more

Watch = Annotated[bool, Parameter(help="Read again every second, until Ctrl-C.", negative=(), show_default=False)]
EveryRound = Annotated[
    bool, Parameter(name="--all", help="Also rounds that were over long ago.", negative=(), show_default=False)
]
Full = Annotated[
    bool,
    Parameter(help="With --watch: compare all orders every time.", negative=(), show_default=False),
]


def audit(
    *, watch: Watch = False, full: Full = False, every_round: EveryRound = False, as_json: AsJson = False
) -> None:
    """Check that nothing was oversold, lost or given back twice. Changes nothing, and may run at full load.

    Exit code 0: everything holds. 1: something is broken; the ids are named. 2: could not tell. With `--watch`: 1 if
    anything was broken at any time.
    """
    settings = with_data_folder(environment())

    async def once() -> int:
        async with open_auditor(settings, every_round=every_round) as auditor:
            report = await auditor.read(full=True)
            show(report, auditor.teller(), as_json=as_json)
            return EXIT[report.verdict]

    async def main(stop: Stop) -> int:
        if not watch:
            return await until_stopped(stop, once())
        async with open_auditor(settings, every_round=every_round) as auditor:
            return await _watch(auditor, stop, full=full, as_json=as_json)

    sys.exit(run(main, settings))


async def _watch(auditor: Auditor, stop: Stop, *, full: bool, as_json: bool) -> int:
    """Prints one line a second, and everything that is wrong whenever that changes."""
    known: list[str] = []
    ever_broken = False
    report = None
    while report is None or not await stop.wait(EVERY_S):
        try:
            report = await until_stopped(stop, auditor.read(full=full))
        except asyncio.CancelledError:
            if report is None:
                raise
            break  # what it has seen until now counts
        ever_broken |= report.verdict is Verdict.BROKEN
        teller = auditor.teller()
        if as_json:
            print_json(msgspec.to_builtins(teller.document(report)))
        else:
            said = _complaints(report, teller)
            console().print(_line(report))
            if said != known:
                for sentence in said:
                    console().print(f"  {sentence}", soft_wrap=True)
            known = said
        sys.stdout.flush()
    return EXIT[Verdict.BROKEN if ever_broken else report.verdict]


def show(report: Report, teller: Teller, *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(teller.document(report)))
        return
    output = console()
    listed = table("invariant", "verdict", "checked", "what")
    for result in report.results:
        listed.add_row(result.invariant.name, _word(result.verdict), result.figures, escape(result.invariant.says))
    output.print(listed)
    for units in report.units:
        output.print(
            f"round {units.round_id}: {_units(units.total)} = {units.available} available + {units.queued} queued + "
            f"{units.live} sold + {units.returning} returning"
        )
    output.print()
    output.print(_line(report))
    for sentence in _complaints(report, teller):
        output.print(f"  {sentence}", soft_wrap=True)


def _word(verdict: Verdict) -> str:
    return f"[{COLOURS[verdict]}]{WORDS[verdict]}[/]"


def _line(report: Report) -> str:
    counts = {verdict: sum(result.verdict is verdict for result in report.results) for verdict in Verdict}
    told = ", ".join(f"{count} {WORDS[verdict]}" for verdict, count in counts.items() if count)
    if len(report.results) in counts.values():
        told = f"all {len(report.results)} invariants"
    units = _sold(report.units)
    return f"{_word(report.verdict)}  {told} ({report.took_ms} ms)" + (f"  {escape(units)}" if units else "")


def _sold(rounds: Sequence[Units]) -> str:
    """Shows a few rounds: those that are on first, then the newest."""
    shown = sorted(rounds, key=lambda units: (not units.on, -units.round_id))[:ROUNDS_MAX]
    said = [f"round {units.round_id}: {units.live} of {units.total} sold" for units in shown]
    more = len(rounds) - len(shown)
    return " · ".join(said + ([f"… and {more} more {'round' if more == 1 else 'rounds'}"] if more else []))


def _units(many: int) -> str:
    return f"{many} unit" if many == 1 else f"{many} units"


def _complaints(report: Report, teller: Teller) -> list[str]:
    said = [sentence for result in report.results for sentence in _of_result(result, teller)]
    return said + [f"[yellow]could not tell[/]: {escape(reason)}" for reason in report.reasons()]


def _of_result(result: InvariantResult, teller: Teller) -> list[str]:
    said = [
        f"[red]{result.invariant.name}[/]: {escape(teller.sentence(finding))}"
        for finding in result.findings[:NAMED_MAX]
    ]
    more = len(result.findings) - len(said)
    return said + ([f"[red]{result.invariant.name}[/]: and {more} more"] if more > 0 else [])
