"""The line of a sale, over the API: how far it has come, what an operator does to it, and people to try it with."""

import sys
from dataclasses import replace
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import address, call
from seckill.cli.command_settings import environment, with_own_secrets
from seckill.cli.output import console, instant, print_json, progress, table
from seckill.cli.parameters import AsJson, OptionalWhole, SaleId, Url, Whole, Why
from seckill.client import line_requests as requests
from seckill.errors import SeckillError
from seckill.loops import Stop

app = App(
    name="line",
    help="Show the line of a sale, pause and resume it, change its pace, give the public value of its draw, fill it "
    "to try it out.",
)

RoundOption = Annotated[str | None, Parameter(name="--round", help="A round other than the current one.")]
StateOption = Annotated[
    Literal["waiting", "served", "left", "passed_over"] | None, Parameter(help="Only those that are in this state now.")
]
FASTEST = "max"
PEOPLE_MAX = 1_000_000


@app.command
def show(
    sale_id: SaleId,
    *,
    state: StateOption = None,
    buyer: Annotated[str | None, Parameter(help="Only this buyer's place.")] = None,
    limit: OptionalWhole = None,
    after: Annotated[str | None, Parameter(help="Go on after this place.")] = None,
    round_: RoundOption = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show how far the line has come, what its draw waits for, and who is in it.

    Parameters
    ----------
    limit
        How many of them, 1 to 1000; 20 if not given.
    """
    wanted = requests.line(sale_id, state=state, buyer=buyer, limit=limit, after=after, round_=round_)
    found = call(wanted, url=url)
    if as_json:
        print_json(found)
        return
    _print_line(sale_id, found)
    _print_entries(found)


@app.command
def pause(
    sale_id: SaleId, *, reason: Why = None, round_: RoundOption = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Serve nobody for now. Everyone who waits keeps their place."""
    _change(sale_id, {"paused": True}, reason, round_, as_json, url)


@app.command
def resume(
    sale_id: SaleId, *, reason: Why = None, round_: RoundOption = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Resume serving."""
    _change(sale_id, {"paused": False}, reason, round_, as_json, url)


@app.command
def pace(
    sale_id: SaleId,
    per_s: Annotated[str, Parameter(help=f"Entries to serve in a second at most, or {FASTEST}.")],
    *,
    reason: Why = None,
    round_: RoundOption = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Change how many entries are served in a second."""
    if per_s != FASTEST and not per_s.isdecimal():
        raise SeckillError(f'"{per_s}" is neither a whole number nor {FASTEST}.')
    _change(sale_id, {"serve_per_s": None if per_s == FASTEST else int(per_s)}, reason, round_, as_json, url)


@app.command
def beacon(
    sale_id: SaleId,
    value: Annotated[str, Parameter(help="The public value, such as the numbers of a lottery; without spaces.")],
    *,
    reason: Why = None,
    round_: RoundOption = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Give the public value that a draw waits for: once, when its list is closed. It cannot be changed."""
    _change(sale_id, {"beacon": value}, reason, round_, as_json, url)


@app.command
def crowd(
    sale_id: SaleId,
    *,
    people: Whole = 1000,
    paying: OptionalWhole = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Let simulated people join, to try a line out: only where no money moves, such as `seckill up --demo`.

    Exit code 0: all of them have joined. 1: not all.

    Parameters
    ----------
    people
        How many, each with a name of their own.
    paying
        Stay until nobody waits any more, and let so many of a hundred pay when it is their turn; the others let it
        lapse. If not given, all join and nothing else happens.
    """
    # Slow to load, and no other command needs them.
    from seckill.cli.async_command import run, until_stopped  # noqa: PLC0415
    from seckill.lab.line_crowd import CrowdSeen, CrowdWanted, join_and_pay  # noqa: PLC0415

    if not 1 <= people <= PEOPLE_MAX:
        raise SeckillError(f"--people must be from 1 to {PEOPLE_MAX}.")
    if paying is not None and not 0 <= paying <= 100:
        raise SeckillError("--paying must be from 0 to 100.")
    settings = replace(with_own_secrets(environment()), log_level="warning")
    share = None if paying is None else paying / 100
    wanted = CrowdWanted(url=address(settings, url), sale_id=sale_id, people=people, paying=share)

    async def main(stop: Stop) -> CrowdSeen:
        with progress() as say:
            return await until_stopped(stop, join_and_pay(wanted, settings, say))

    seen = run(main, settings)
    if as_json:
        print_json(seen.document())
    else:
        _print_crowd(seen.document(), stayed=paying is not None)
    sys.exit(0 if seen.answers["joined"] == people else 1)


def _print_crowd(seen: dict[str, Any], *, stayed: bool) -> None:
    facts = table()
    for answer, times in seen["answers"].items():
        facts.add_row(f"[bold]{escape(answer)}[/]", f"{times:,}")
    facts.add_row("[bold]in[/]", f"{seen['joined_in_s']:g} s")
    if stayed:
        for name in ("served", "paid", "not_paid"):
            facts.add_row(f"[bold]{name}[/]", f"{seen[name]:,}")
        for answer, times in seen["unpayable"].items():
            facts.add_row(f"[bold]could not pay: {escape(answer)}[/]", f"{times:,}")
        for reason, times in seen["ends"].items():
            facts.add_row(f"[bold]passed_over: {escape(reason)}[/]", f"{times:,}")
    console().print(facts)


def _change(
    sale_id: str, change: dict[str, object], reason: str | None, round_: str | None, as_json: bool, url: str | None
) -> None:
    found = call(requests.change_line(sale_id, change, reason, round_=round_), url=url)
    if as_json:
        print_json(found)
    else:
        _print_line(sale_id, found)


def _print_line(sale_id: str, found: dict[str, Any]) -> None:
    line = found["line"]
    facts = table()
    for name in ("order", "waiting", "served", "served_up_to", "places", "units", "units_left", "unpaid"):
        facts.add_row(f"[bold]{name}[/]", str(line[name]))
    facts.add_row("[bold]serve_per_s[/]", str(found["serve_per_s"] or "as fast as it goes"))
    facts.add_row("[bold]paused[/]", "yes" if line["paused"] else "no")
    facts.add_row("[bold]draw[/]", escape(_draw(sale_id, found)))
    console().print(facts)


def _draw(sale_id: str, found: dict[str, Any]) -> str:
    if found["drawn_at"] is not None:
        return f"made at {instant(found['drawn_at'])}"
    if found["line"]["drawn"]:
        return "none: places are given as people come"
    if found["closed_at"] is None:
        return "its list is open until the sale begins"
    if not found["wants_beacon"] or found["beacon"] is not None:
        return "it is being made; a million entries take minutes"
    if found["fetches_beacon"]:
        return "it waits for its public value, which comes from SECKILL_BEACON_URL"
    return f"it waits for its public value, which an operator has to give: `seckill line beacon {sale_id} VALUE`"


def _print_entries(found: dict[str, Any]) -> None:
    if not found["entries"]:
        return
    listed = table("entry", "place", "buyer", "units", "state", "joined")
    for entry in found["entries"]:
        place = "–" if entry["place"] is None else str(entry["place"])
        joined = instant(entry["joined_at"])
        listed.add_row(
            entry["entry_id"], place, escape(entry["buyer"] or ""), str(entry["quantity"]), entry["state"], joined
        )
    console().print()
    console().print(listed)
    if found["next"] is not None:
        console().print(f"There are more: --after {found['next']}")
