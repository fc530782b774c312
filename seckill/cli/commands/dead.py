"""Dead letters: orders that could not be written."""

from typing import Any

from cyclopts import App
from rich.markup import escape

from seckill.cli.api_connection import call
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, LetterId, Url, Why
from seckill.client import requests

app = App(name="dead", help="List, show, replay and discard dead letters: orders that could not be written.")


@app.command(name="list")
def list_(*, as_json: AsJson = False, url: Url = None) -> None:
    """List all dead letters, newest first."""
    found = call(requests.dead_letters(), url=url)
    if as_json:
        print_json(found)
        return
    listed = table("id", "order", "attempts", "since", "reason")
    for letter in found["dead"]:
        listed.add_row(
            letter["id"],
            letter["order_id"] or "–",
            str(letter["attempts"]),
            instant(letter["created_at"]),
            escape(letter["reason"]),
        )
    console().print(listed if found["dead"] else "No dead letters.")


@app.command
def show(letter_id: LetterId, *, as_json: AsJson = False, url: Url = None) -> None:
    """Show a dead letter, with every try that was made."""
    _print(call(requests.dead_letter(letter_id), url=url), as_json)


@app.command
def replay(letter_id: LetterId, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Try once more to write a dead letter's order. Refused if the order is over already."""
    _print(call(requests.act_on_dead_letter(letter_id, "replay"), url=url, why=reason), as_json)


@app.command
def discard(letter_id: LetterId, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Discard a dead letter: nothing is left to do about it."""
    _print(call(requests.act_on_dead_letter(letter_id, "discard"), url=url, why=reason), as_json)


def _print(letter: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(letter)
        return
    facts = table()
    for name in ("id", "order_id", "state", "reason", "attempts", "created_at", "payload"):
        facts.add_row(f"[bold]{name}[/]", escape(str(letter[name])))
    for tried in letter["history"]:
        facts.add_row("[bold]tried[/]", f"{tried['at']}  {escape(tried['reason'])}")
    console().print(facts)
