"""Refunds, over the API."""

from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import call
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, Url, Why
from seckill.client import refund_requests as requests
from seckill.domain import money

app = App(name="refunds", help="List refunds, and note those that were made by hand.")

RefundId = Annotated[str, Parameter(help="The refund's id, as `seckill refunds list` shows it.")]
Waiting = Annotated[bool, Parameter(negative=(), help="Only those that are still to be made.")]


@app.command(name="list")
def list_(*, waiting: Waiting = False, as_json: AsJson = False, url: Url = None) -> None:
    """List refunds: those still to be made, then the newest."""
    found = call(requests.refunds(), url=url)
    shown = [each for each in found["refunds"] if not (waiting and each["done_at"])]
    if as_json:
        print_json(found | {"refunds": shown})
        return
    listed = table("id", "order", "amount", "payment", "since", "state", "reason")
    for each in shown:
        why = ": ".join(part for part in (each["reason"], each["explanation"]) if part)
        listed.add_row(
            each["id"],
            each["order_id"],
            money.shown(each["amount_cents"], each["currency"]),
            escape(f"{each['provider']} {each['payment_id']}"),
            instant(each["created_at"]),
            escape(_state(each)),
            escape(why),
        )
    console().print(listed if shown else "No refunds.")


@app.command
def done(refund_id: RefundId, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Note that a refund was made by hand, so that the provider is no longer asked for it. One that is still being
    tried would be made twice."""
    noted = call(requests.made_by_hand(refund_id, reason), url=url)
    if as_json:
        print_json(noted)
        return
    amount = money.shown(noted["amount_cents"], noted["currency"])
    console().print(f"Refund {noted['id']} of {amount} for order {noted['order_id']} is made.")


def _state(refund: dict[str, Any]) -> str:
    if refund["done_at"] is not None:
        return f"made {instant(refund['done_at'])}"
    if refund["refused"] is not None:
        return f"refused: {refund['refused']}"
    return f"tried {refund['attempts']} times" if refund["attempts"] != 1 else "tried once"
