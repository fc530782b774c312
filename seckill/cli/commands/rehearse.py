"""Rehearses on the real deployment."""

import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token
from rich.markup import escape

from seckill import __version__
from seckill.cli.async_command import run, until_stopped
from seckill.cli.command_settings import environment, with_data_folder
from seckill.cli.folder_argument import make_folder
from seckill.cli.lab_report import hand_over
from seckill.cli.output import console, progress, table
from seckill.cli.parameters import AsJson, OptionalWhole, Whole
from seckill.errors import StartError
from seckill.lab.rehearsal.crowd import HABITS, PRESSES_ONLY
from seckill.lab.rehearsal.report import NAMES, audit_told, figure, report
from seckill.lab.rehearsal.runner import RehearsalWanted, own_senders
from seckill.lab.rehearsal.runner import run as run_rehearsal
from seckill.lab.rehearsal.sender_processes import SENDERS_MAX
from seckill.loops import Stop
from seckill.settings import Settings

REPORT_FILE = "rehearsal.html"
BUYERS_MAX = 5_000_000
SECONDS_MIN, SECONDS_MAX = 5, 1800
COLOURS = {0: "green", 1: "red", 2: "yellow"}


def seconds(_: Any, tokens: Sequence[Token]) -> float:
    found = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)(s|m|)", tokens[0].value)
    if found is None:
        raise ValueError(f'"{tokens[0].value}" is not a time: write it like 60s or 2m.')
    return float(found[1]) * (60 if found[2] == "m" else 1)


def rate(_: Any, tokens: Sequence[Token]) -> float:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)(?:/s)?", tokens[0].value)
    if found is None or not float(found[1]):
        raise ValueError(f'"{tokens[0].value}" is not a rate: write it like 5000/s.')
    return float(found[1])


Seconds = Annotated[float, Parameter(name="--for", converter=seconds, help="How long the load lasts: 60s, 2m.")]
Rate = Annotated[float | None, Parameter(converter=rate, help="Presses a second that must be safe: 5000/s.")]
Flag = Parameter(negative=(), show_default=False)


def rehearse(
    *,
    url: str,
    buyers: Whole = 100_000,
    for_: Seconds = 60.0,
    need: Rate = None,
    senders: OptionalWhole = None,
    lanes: Whole = 1,
    presses_only: Annotated[bool, Flag] = False,
    metrics: Annotated[tuple[str, ...], Flag] = (),
    beside_sales: Annotated[bool, Flag] = False,
    with_webhooks: Annotated[bool, Flag] = False,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Send a growing crowd to a marked sale on a real deployment, and tell which rate is safe and what is full first.

    Needs the deployment's SECKILL_ADMIN_KEY, and its SECKILL_JWT_SECRET or demo sign-in. No money moves, real sales are
    left alone, and the sale is closed and hidden at the end, also after Ctrl-C.

    Exit code 0: `--need` is reached, or nothing was asked for and a safe rate was found. 1: not reached. 2: could not
    tell.

    Parameters
    ----------
    url
        The deployment as buyers reach it, such as https://sale.example.com.
    buyers
        How many there are at most; each gets one order at most.
    senders
        Processes that send; when left out, one for every two cores.
    lanes
        Of the marked sale: as many as the real one will have.
    presses_only
        Everybody presses once and does nothing else: to compare with `seckill bench`.
    metrics
        Where other roles serve /metrics (SECKILL_METRICS_PORT), once for each.
    beside_sales
        Also while real sales are on or about to begin. Their buyers will feel it.
    with_webhooks
        Also if webhooks would be told of the rehearsal's orders.
    out
        Folder to write a report to, with charts.
    """
    _check(buyers, for_, senders, lanes, metrics)
    settings = replace(with_data_folder(environment()), log_level="warning")
    if out is not None:
        make_folder(out)
    wanted = RehearsalWanted(
        url=url,
        buyers=buyers,
        seconds=for_,
        need=need,
        senders=own_senders() if senders is None else senders,
        lanes=lanes,
        habits=PRESSES_ONLY if presses_only else HABITS,
        metrics=metrics,
        beside_sales=beside_sales,
        with_webhooks=with_webhooks,
    )
    found = _held(wanted, settings)
    found["run"] = {
        "command": shlex.join(["seckill", *sys.argv[1:]]),
        "version": __version__,
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
    }
    hand_over(found, _print, report, out and out / REPORT_FILE, as_json=as_json)
    sys.exit(found["verdict"]["exit_code"])


def _check(buyers: int, for_: float, senders: int | None, lanes: int, metrics: Sequence[str]) -> None:
    if not 1 <= buyers <= BUYERS_MAX:
        raise StartError(f"--buyers must be from 1 to {BUYERS_MAX}.")
    if not SECONDS_MIN <= for_ <= SECONDS_MAX:
        raise StartError(f"--for must be from {SECONDS_MIN} to {SECONDS_MAX} seconds.")
    if senders is not None and not 1 <= senders <= SENDERS_MAX:
        raise StartError(f"--senders must be from 1 to {SENDERS_MAX}.")
    if not 1 <= lanes <= 256:
        raise StartError("--lanes must be from 1 to 256.")
    if not all(address.startswith(("http://", "https://")) for address in metrics):
        raise StartError("--metrics must be an address, such as http://10.0.0.7:9100/metrics.")


def _held(wanted: RehearsalWanted, settings: Settings) -> dict[str, Any]:
    async def main(stop: Stop) -> dict[str, Any]:
        with progress() as say:
            return await until_stopped(stop, run_rehearsal(wanted, settings, say))

    return run(main, settings)


def _print(found: dict[str, Any]) -> None:
    write = console().print
    verdict = found["verdict"]
    write(f"[bold {COLOURS[verdict['exit_code']]}]{escape(verdict['says'])}[/]\n")
    phases = table("presses a second", "", "answered", "half within", "99 % within", "written after", *NAMES, "")
    for phase in found["phases"]:
        phases.add_row(
            f"{phase['rate_per_s']:,.0f}",
            "opening" if phase["shape"] == "wave" else "",
            f"{phase['answered_per_s']:,.0f}",
            f"{phase['p50_ms'] or 0:g} ms",
            f"{phase['p99_ms'] or 0:g} ms",
            f"{phase['lag_ms']:,} ms",
            *(figure(phase["busy"][name], percent=True) for name in NAMES),
            "[green]good[/]" if phase["good"] else f"[red]{escape(phase['why'])}[/]",
        )
    write(phases)
    write("")
    for sentence in found["advice"]:
        write(f"  {escape(sentence)}", soft_wrap=True)
    if found["needs"]:
        write("\n[bold]What a crowd of each size needs, by the cost of a press[/]")
        listed = table("presses a second", "API processes", "workers", "primaries", "lanes", "connections", "Mbit/s")
        for each in found["needs"]:
            counts = (figure(each[name]) for name in ("api", "workers", "primaries", "lanes", "connections"))
            listed.add_row(f"{each['rate']:,.0f}", *counts, f"{each['network_mbit']:,.0f}")
        write(listed)
    after = found["after"]
    write(f"\nThe sale {after['sale_id']} is {_state(after)}; audit: {audit_told(after['audit'])}.")
    for sentence in after["complaints"]:
        write(f"[red]{escape(sentence)}[/]", soft_wrap=True)


def _state(after: dict[str, Any]) -> str:
    return "closed and hidden" if after["closed"] and after["hidden"] else "not cleaned up"
