"""Mends what the audit has found."""

import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.markup import escape

from seckill.audit import Verdict, open_auditor
from seckill.audit.document import Teller
from seckill.bootstrap.engine import open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.cli.async_command import run, until_stopped
from seckill.cli.command_settings import environment, with_data_folder
from seckill.cli.commands.audit import EXIT, show
from seckill.cli.output import console, print_json
from seckill.cli.parameters import AsJson, Why
from seckill.loops import Stop
from seckill.operations.repair import Mended, Repair
from seckill.ports.record import Actor, acting_as

Apply = Annotated[
    bool,
    Parameter(help="Do it. Without this, the command only says what it would do.", negative=(), show_default=False),
]


def repair(*, apply: Apply = False, reason: Why = None, as_json: AsJson = False) -> None:
    """Say what is broken and what would mend it; do it with `--apply`.

    It works in the safe direction only: it never invents a unit and never releases what the ledger has not decided.
    What it cannot mend like that it leaves as it is, and says what a person should do. Harmless to repeat and to kill.

    Exit code 0: everything holds. 1: something is broken (or would be mended with `--apply`). 2: could not tell.
    """
    settings = with_data_folder(environment())

    async def work() -> int:
        async with open_auditor(settings, every_round=True) as auditor, open_engine(settings) as engine:
            mender = Repair(UseCases(engine, settings))

            def tell(says: str) -> None:
                if not as_json:
                    console().print(f"[green]doing[/]  {escape(says)}", soft_wrap=True)

            with acting_as(Actor("command-line", why=reason)):
                mended = await mender.run(auditor, apply=apply, tell=tell)
            _show(mended, auditor.teller(), as_json=as_json)
            return EXIT[Verdict.BROKEN if mended.plan.steps else mended.report.verdict]

    async def main(stop: Stop) -> int:
        return await (work() if apply else until_stopped(stop, work()))

    sys.exit(run(main, settings))


def _show(mended: Mended, teller: Teller, *, as_json: bool) -> None:
    done, report, plan = mended.done, mended.report, mended.plan
    would = [step.says for step in plan.steps]
    if as_json:
        audit = msgspec.to_builtins(teller.document(report))
        print_json({"done": done, "to_do": would, "for_people": plan.for_people, "audit": audit})
        return
    show(report, teller, as_json=False)
    output = console()
    output.print()
    for says in would:
        output.print(f"[yellow]would[/]  {escape(says)}", soft_wrap=True)
    for says in plan.for_people:
        output.print(f"[red]you[/]    {escape(says)}", soft_wrap=True)
    if would:
        output.print("\n`seckill repair --apply` does it.")
    elif not plan.for_people:
        output.print("Nothing to mend." if not done else "Mended.")
