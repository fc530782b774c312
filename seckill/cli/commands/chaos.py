"""Load and faults against real processes."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from seckill.audit.report import Verdict
from seckill.cli.async_command import run, until_stopped
from seckill.cli.command_settings import environment
from seckill.cli.commands.audit import COLOURS, EXIT, WORDS
from seckill.cli.folder_argument import make_folder
from seckill.cli.lab_report import hand_over
from seckill.cli.output import console, table
from seckill.cli.parameters import AsJson, Whole
from seckill.errors import StartError
from seckill.lab.chaos.document import verdict
from seckill.lab.chaos.place import Wanted
from seckill.lab.chaos.report import report
from seckill.lab.chaos.runner import Run, Say
from seckill.lab.chaos.schedule import KINDS
from seckill.lab.chaos.servers.choice import BROKERS, GATES, LEDGERS
from seckill.lab.chaos.servers.given import GivenServer
from seckill.loops import Stop

REPORT_FILE = "chaos.html"
MINUTES_MIN, MINUTES_MAX = 0.4, 24 * 60


def chaos(
    *,
    minutes: float = 2.0,
    seed: Whole = 1,
    database: str = "sqlite",
    redis: str = "valkey",
    broker: str = "none",
    faults: str = "all",
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Start everything, let a crowd in, break things on a schedule, audit all along, and tell what held.

    Exit code 0: everything held, and every window that was asked for was hit. 1: something broke. 2: could not tell.

    Parameters
    ----------
    minutes
        How long the faults go on, from 0.4 to 1440.
    seed
        Decides the schedule, the failpoints and what buyers do.
    database
        `sqlite`, `postgres`, `mariadb`, or the address of a PostgreSQL on this machine.
    redis
        `valkey`, `cluster`, `sentinel`, or the address of an empty Valkey or Redis on this machine.
    broker
        `none`, `rabbitmq`, or the address of a RabbitMQ on this machine.
    faults
        Kinds of faults with commas between them, or `all`.
    out
        Folder to write a report to, with a chart, and the logs of all processes.
    """
    if not MINUTES_MIN <= minutes <= MINUTES_MAX:
        raise StartError(f"--minutes must be from {MINUTES_MIN:g} to {MINUTES_MAX}.")
    kinds = _chosen(faults)
    _check("--database", database, LEDGERS)
    _check("--redis", redis, GATES)
    _check("--broker", broker, {"none": None, **BROKERS})
    settings = replace(environment(), log_level="error")
    logs = None
    if out is not None:
        make_folder(logs := out / "logs")
    wanted = Wanted(gate=redis, ledger=database, broker="" if broker == "none" else broker, logs=logs, seed=seed)

    async def main(stop: Stop) -> dict[str, Any]:
        with _progress(minutes * 60) as (say, advance):
            return await until_stopped(stop, Run(wanted, minutes, kinds, say, advance).run())

    found = run(main, settings)
    found |= {"command": shlex.join(["seckill", *sys.argv[1:]]), "seed": seed, "minutes": minutes}
    hand_over(found, _print, report, out and out / REPORT_FILE, as_json=as_json)
    sys.exit(EXIT[Verdict(found["verdict"])])


def _chosen(faults: str) -> list[str]:
    chosen = [word.strip() for word in faults.split(",")]
    if chosen == ["all"]:
        return list(KINDS)
    for word in chosen:
        if word not in KINDS:
            raise StartError(f"There is no fault {word!r}: choose from {', '.join(KINDS)}.")
    return chosen


def _check(option: str, value: str, known: Any) -> None:
    if "://" in value:
        GivenServer(value)  # says what is wrong with it
    elif value not in known:
        raise StartError(f"{option} {value!r} is not known: choose from {', '.join(known)}, or give an address.")


@contextmanager
def _progress(seconds: float) -> Iterator[tuple[Say, Callable[[float], None]]]:
    """Shows a bar on a terminal, and plain lines elsewhere."""
    shown = Console(stderr=True, highlight=False)
    if not shown.is_terminal:
        now_s = 0.0

        def advance(at_s: float) -> None:
            nonlocal now_s
            now_s = at_s

        yield (lambda what: shown.print(f"{now_s:6.1f} s  {escape(what)}")), advance
        return
    columns = (BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f} s"), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=shown, transient=True) as bar:
        task = bar.add_task("", total=seconds)
        yield (
            (lambda what: bar.update(task, description=what)),
            (lambda at_s: bar.update(task, completed=min(at_s, seconds))),
        )


def _print(found: dict[str, Any]) -> None:
    write = console().print
    write(f"[bold]{escape(verdict(found))}[/]\n")
    write(f"{'; '.join(found['servers'].values())}; seed {found['seed']}, {found['minutes']:g} minutes\n")
    checks = table("check", "verdict", "wrong", "what")
    checks.columns[2].justify = "right"
    for check in found["checks"]:
        judged = Verdict(check["verdict"])
        checks.add_row(
            check["name"], f"[{COLOURS[judged]}]{WORDS[judged]}[/]", str(check["count"]), escape(check["says"])
        )
    write(checks)
    kinds: dict[str, list[str]] = {}
    for fault in found["faults"]:
        kinds.setdefault(fault["kind"], []).append(fault["bit"])
    done = table("fault", "times", "hit", "what")
    for kind, bits in kinds.items():
        done.add_row(kind, str(len(bits)), str(sum(map(bool, bits))), escape(KINDS[kind].says))
    write("")
    write(done)
    fired = found["windows"]["fired"]
    write(f"\nfailpoints fired: {', '.join(f'{name} {count}' for name, count in fired.items()) or 'none'}")
    write(f"lost with the gate's memory, as declared: {found['declared_lost']}")
    write(f"failed, and their buyers told: {found['failed_and_told']}")
    for check in found["checks"]:
        for sentence in check["named"]:
            write(f"[{COLOURS[Verdict(check['verdict'])]}]{check['name']}[/]: {escape(sentence)}", soft_wrap=True)
    for note in found["notes"]:
        write(f"note: {escape(note)}", soft_wrap=True)
