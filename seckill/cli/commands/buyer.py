"""What operators do to buyers, over the API."""

from datetime import datetime
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import call
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, Url, moment
from seckill.client import access_requests as requests

app = App(name="buyer", help="Block and unblock buyers, and end their tokens.")

User = Annotated[str, Parameter(help="The buyer, as the `sub` of their tokens says.")]
Reason = Annotated[str, Parameter(help="Why; it stays on the record, and buyers do not see it.")]
Before = Annotated[
    datetime | None,
    Parameter(
        converter=moment, help="Tokens that were issued before, such as 2026-11-20T10:00:00+08:00; now, if not given."
    ),
]


@app.command
def block(user: User, *, reason: Reason, as_json: AsJson = False, url: Url = None) -> None:
    """Stop a buyer from buying, paying and queueing, everywhere within seconds; takes them out of every line."""
    _print(call(requests.act_on_buyer("block", user, reason), url=url), as_json)


@app.command
def unblock(user: User, *, reason: Reason, as_json: AsJson = False, url: Url = None) -> None:
    """Let a buyer buy again."""
    _print(call(requests.act_on_buyer("unblock", user, reason), url=url), as_json)


@app.command(name="list")
def list_(
    *,
    after: Annotated[str | None, Parameter(help="Go on after this buyer.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List blocked buyers, by name."""
    found = call(requests.blocked_buyers(after=after), url=url)
    if as_json:
        print_json(found)
        return
    listed = table("buyer", "blocked", "by", "reason")
    for buyer in found["buyers"]:
        at, by = instant(buyer["blocked_at"]), escape(buyer["blocked_by"] or "–")
        listed.add_row(escape(buyer["buyer"]), at, by, escape(buyer["reason"] or ""))
    console().print(listed if found["buyers"] else "Nobody is blocked.")
    if found["next"] is not None:
        console().print(f"There are more: --after {found['next']}")


@app.command
def end_tokens(user: User, *, reason: Reason, before: Before = None, as_json: AsJson = False, url: Url = None) -> None:
    """End a buyer's tokens that were issued before a moment: they have to sign in again."""
    _print(call(requests.end_tokens(user, before, reason), url=url), as_json)


@app.command
def end_all_tokens(*, reason: Reason, before: Before = None, as_json: AsJson = False, url: Url = None) -> None:
    """End the tokens of all buyers that were issued before a moment: everybody has to sign in again."""
    ended = call(requests.end_tokens(None, before, reason), url=url)
    if as_json:
        print_json(ended)
        return
    console().print(f"All tokens issued before {instant(ended['tokens_ended_before'])} are over.")


def _print(buyer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(buyer)
        return
    state = "is blocked" if buyer["blocked"] else "may buy"
    ended = buyer["tokens_ended_before"]
    tokens = "" if ended is None else f"; tokens issued before {instant(ended)} are over"
    console().print(f"{escape(buyer['buyer'])} {state}{tokens}.")
