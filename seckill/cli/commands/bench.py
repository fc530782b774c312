"""Measures how fast the engine is on this machine, beside what the machine can do."""

import os
import platform
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from seckill import __version__
from seckill.cli.async_command import run, until_stopped
from seckill.cli.command_settings import environment
from seckill.cli.folder_argument import make_folder
from seckill.cli.lab_report import hand_over
from seckill.cli.output import console, progress, table
from seckill.cli.parameters import AsJson, Whole
from seckill.errors import StartError
from seckill.lab.bench.goals import judged
from seckill.lab.bench.load import CONNECTIONS, generator
from seckill.lab.bench.report import RATES, report, verdict
from seckill.lab.bench.runner import BenchPlan
from seckill.lab.bench.runner import run as run_bench
from seckill.lab.bench.services import framework
from seckill.loops import Stop
from seckill.settings import Settings

REPORT_FILE = "bench.html"
QUICK = BenchPlan(rounds=1, seconds=2, sustained_s=4, overload_s=1, million=False)
OVERLOAD_S = 10


def bench(
    *,
    ledger: Literal["sqlite", "postgres", "mariadb"] = "sqlite",
    rounds: Whole = 3,
    seconds: Whole = 8,
    sustained_s: Whole = 30,
    quick: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Measure accepted and persisted orders a second, beside the limits of this machine and a plain service.

    Parameters
    ----------
    ledger
        Where orders are written to; `postgres` needs SECKILL_DATABASE_URL, `mariadb` uses it or starts its own.
    rounds
        How often everything is measured; the medians count.
    seconds
        How long each measurement of a round takes.
    sustained_s
        How long the load lasts in which accepted and persisted are compared.
    quick
        Once, two seconds each, and without a million buyers: at most a minute, for a first look.
    out
        Folder to write a report to, with charts.
    """
    plan = QUICK if quick else _plan(rounds, seconds, sustained_s)
    settings = replace(environment(), log_level="warning")
    if ledger == "postgres" and not settings.database_url.startswith("postgres"):
        raise StartError("Set SECKILL_DATABASE_URL to a PostgreSQL server, for databases of the benchmark's own.")
    if out is not None:
        make_folder(out)

    async def main(stop: Stop) -> dict[str, Any]:
        with progress() as say:
            async with _ledger(ledger, settings) as ledger_url:
                work = run_bench(ledger_url, plan, say)
                return await until_stopped(stop, work)

    found = run(main, settings)
    found["run"] |= {
        "command": shlex.join(["seckill", *sys.argv[1:]]),
        "version": __version__,
        "ledger": ledger,
        "quick": quick,
        "seconds": plan.seconds,
        "connections": CONNECTIONS,
        "generator": generator(),
        "plain_framework": framework(),
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
    }
    hand_over(found, _print, report, out and out / REPORT_FILE, as_json=as_json)


def _plan(rounds: int, seconds: int, sustained_s: int) -> BenchPlan:
    for name, value, most in (("rounds", rounds, 100), ("seconds", seconds, 600), ("sustained-s", sustained_s, 3600)):
        if not 1 <= value <= most:
            raise StartError(f"--{name} must be from 1 to {most}.")
    return BenchPlan(rounds=rounds, seconds=seconds, sustained_s=sustained_s, overload_s=OVERLOAD_S, million=True)


@asynccontextmanager
async def _ledger(kind: str, settings: Settings) -> AsyncIterator[str]:
    """Yields the address at which the benchmark can make databases of its own; empty: it uses files."""
    if kind == "mariadb" and not settings.database_url.startswith(("mysql", "mariadb")):
        from seckill.lab.servers.mariadb import EmbeddedMariaDB  # noqa: PLC0415 (its driver may not be installed)

        with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as folder:
            server = EmbeddedMariaDB(Path(folder))
            try:
                await server.start()
                await server.ready()
                yield server.url("mysql")
            finally:
                await server.stop()
    else:
        yield "" if kind == "sqlite" else settings.database_url


def _print(found: dict[str, Any]) -> None:
    write = console().print
    write(f"[bold]{verdict(found)}[/]\n")
    figures = table("figure", "per second")
    for name in RATES:
        figures.add_row(name, "–" if found[name] is None else f"{found[name]:,.0f}")
    costs = table("CPU time of a claim", "µs")
    for part, value in found["cpu_us"].items():
        costs.add_row(part, f"{value:g}")
    offers = table("offered a second", "accepted", "persisted", "unwritten", "99 % within, ms")
    for each in found["overload"]:
        offers.add_row(*(f"{each[name]:,.0f}" for name in ("offered", "accepted", "persisted", "backlog", "p99_ms")))
    goals = table("goal", "measured", "asked for", "")
    for name, value, goal, reached in judged(found):
        goals.add_row(name, f"{value:g}", goal, "[green]reached[/]" if reached else "[bold red]missed[/]")
    for listed in (figures, costs, offers, goals):
        for column in listed.columns[1:5]:
            column.justify = "right"
        write(listed)
        write("")
    write(
        f"answers: half within {found['p50_ms']:g} ms, 99 % within {found['p99_ms']:g} ms; "
        f"{found['mean_batch']:g} claims in one call to the gate"
    )
    for where, each in found["confirm"].items():
        write(
            f"confirmed by the {where}: {each['accept']:,.0f} a second, half within {each['p50_ms']:g} ms, 99 % within "
            f"{each['p99_ms']:g} ms"
        )
