"""The ladder of strategies, on real servers."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from seckill.cli.async_command import run, until_stopped
from seckill.cli.command_settings import environment
from seckill.cli.folder_argument import make_folder
from seckill.cli.lab_report import hand_over
from seckill.cli.output import console, table
from seckill.cli.parameters import AsJson, Whole
from seckill.errors import StartError
from seckill.lab.compare.document import crowd_of, document, verdict
from seckill.lab.compare.doors import DOORS, DoorRunner
from seckill.lab.compare.ladder import LADDER
from seckill.lab.compare.report import COUNTS, DOOR_FIGURES, SPEEDS, door_figure, report
from seckill.lab.compare.runner import Runner, Say
from seckill.lab.compare.servers import rented
from seckill.lab.compare.workload import Workload
from seckill.loops import Stop

STOCK_MIN = 10
STOCK_MAX = 100_000
REPORT_FILE = "compare.html"


def compare(
    *,
    strategies: str = "all",
    stock: Whole = 200,
    buyers: Whole = 1000,
    seed: Whole = 1,
    pause_ms: Whole = 5,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Run every design that tutorials teach against the same rush, and show what it sells, loses and costs.

    Parameters
    ----------
    strategies
        Names, or parts of the ladder (sync, async, give-back, engine, bots), with commas between them.
    stock
        Units to sell.
    buyers
        People who want one; half of them press three times at once.
    seed
        Decides in which order they press.
    pause_ms
        Milliseconds between a check and a write, in place of the network that one machine lacks.
    out
        Folder to write a report to, with charts.
    """
    if not STOCK_MIN <= stock <= STOCK_MAX:
        raise StartError(f"--stock must be from {STOCK_MIN} to {STOCK_MAX}.")
    if not 2 * stock <= buyers <= 20 * STOCK_MAX:
        raise StartError("--buyers must be at least twice the stock: without a rush there is nothing to see.")
    if not 0 <= pause_ms <= 1000:
        raise StartError("--pause-ms must be from 0 to 1000.")
    names = _chosen(strategies)
    settings = replace(environment(), log_level="warning")  # the table shows everything else
    if out is not None:
        make_folder(out)
    workload = Workload(stock=stock, buyers=buyers, seed=seed)

    async def work() -> dict[str, Any]:
        async with rented(settings, pause_ms) as place:
            with _progress(names) as (say, begin):
                runner = Runner(place.servers, workload, place.folder, say)
                doors = DoorRunner(place.servers, workload, say)
                outcomes, before_doors = [], []
                for name in names:
                    begin(name)
                    if name in DOORS:
                        before_doors.append(await doors.run(name))
                    else:
                        outcomes.append(await runner.run(name))
        command = shlex.join(["seckill", *sys.argv[1:]])
        return document(outcomes, before_doors, workload, pause_ms=pause_ms, servers=place.names, command=command)

    async def main(stop: Stop) -> dict[str, Any]:
        return await until_stopped(stop, work())

    made = run(main, settings)
    hand_over(made, _print, report, out and out / REPORT_FILE, as_json=as_json)


def _chosen(strategies: str) -> list[str]:
    chosen: set[str] = set()
    for word in (word.strip() for word in strategies.split(",")):
        found = {name for name, kind in LADDER.items() if word in (name, kind.group, "all")}
        found |= {name for name in DOORS if word in (name, "bots", "all")}
        if not found:
            raise StartError(f"There is no strategy {word!r}: choose from {', '.join((*LADDER, *DOORS))}.")
        chosen |= found
    return [name for name in (*LADDER, *DOORS) if name in chosen]


@contextmanager
def _progress(names: list[str]) -> Iterator[tuple[Say, Say]]:
    """Shows a bar on a terminal, and plain lines elsewhere. Yields two functions: one tells the step, the other begins
    the next strategy."""
    shown = Console(stderr=True, highlight=False)
    if not shown.is_terminal:
        yield (lambda _: None), (lambda name: shown.print(f"{name} …"))
        return
    columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=shown, transient=True) as bar:
        task = bar.add_task("", total=len(names))
        now = ""

        def begin(name: str) -> None:
            nonlocal now
            if now:
                bar.advance(task)
            now = name
            bar.update(task, description=name)

        yield (lambda step: bar.update(task, description=f"{now}: {step}")), begin


def _print(made: dict[str, Any]) -> None:
    write = console().print
    write(f"[bold]{verdict(made)}[/]\n")
    write(f"{crowd_of(made)} for {made['stock']} units; {'; '.join(made['servers'].values())}\n")
    if made["strategies"]:
        _print_ladder(made)
    if made["doors"]:
        _print_doors(made)


def _print_doors(made: dict[str, Any]) -> None:
    shown = table("with a bot in the crowd", *DOOR_FIGURES.values())
    for column in shown.columns[1:]:
        column.justify = "right"
    for door in made["doors"]:
        shown.add_row(door["door"], *(door_figure(door, name) for name in DOOR_FIGURES))
    console().print(shown)


def _print_ladder(made: dict[str, Any]) -> None:
    write = console().print
    sold = table("strategy", "offered", "accepted", "persisted", *COUNTS, "lost at kill", "unsold at kill")
    fast = table("strategy", *SPEEDS.values())
    for listed in (sold, fast):
        for column in listed.columns[1:]:
            column.justify = "right"
    for found in made["strategies"]:
        if found["not_run"]:
            continue
        count, crash, speed = found["count"], found["crash"], found["speed"]
        ends = [_flaw(crash["count"][name]) if crash else "–" for name in ("lost", "undersold")]
        facts = [str(count[name]) for name in ("offered", "accepted", "persisted")]
        sold.add_row(found["strategy"], *facts, *(_flaw(count[name]) for name in COUNTS), *ends)
        if speed:
            fast.add_row(found["strategy"], *(f"{speed[name]:,.1f}" for name in SPEEDS))
    write(sold)
    if fast.row_count:
        write("")
        write(fast)
    for found in made["strategies"]:
        if found["not_run"]:
            write(f"\n{found['strategy']} was not run: {found['not_run']}.")


def _flaw(number: int) -> str:
    return f"[bold red]{number}[/]" if number else "0"
