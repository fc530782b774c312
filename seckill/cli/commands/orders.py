"""Orders of all buyers, over the API."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import call, connected
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, OptionalWhole, Url, moment
from seckill.cli.whole_sale import act_on_all
from seckill.client import requests
from seckill.client.requests import OrderQuery, Request
from seckill.domain import money
from seckill.domain.order import OrderState
from seckill.errors import SeckillError

app = App(name="orders", help="List and export orders; cancel and refund one, or all of a sale.")

_WRITTEN = "such as 2026-11-20T10:00:00+08:00."
SaleOption = Annotated[str | None, Parameter(name="--sale", help="Only of this sale.")]
RoundOption = Annotated[str | None, Parameter(name="--round", help="Only of this round.")]
# Orders that are queued are not in the ledger yet.
Written = Literal["unpaid", "paid", "cancelled", "expired", "failed", "refunded"]
ItemOption = Annotated[str | None, Parameter(name="--item", help="Only of this item; `sale show` tells their ids.")]
StateOption = Annotated[Written | None, Parameter(help="Only those that are in this state now.")]
BuyerOption = Annotated[str | None, Parameter(help="Only of this buyer.")]
Since = Annotated[datetime | None, Parameter(converter=moment, help=f"Accepted then or later, {_WRITTEN}")]
Until = Annotated[datetime | None, Parameter(converter=moment, help=f"Accepted before, {_WRITTEN}")]
Out = Annotated[Path | None, Parameter(help="The file to write; the standard output, if not given.")]
OrderId = Annotated[str | None, Parameter(help="The order's id, as buyers and the console see it.")]
WholeSale = Annotated[str | None, Parameter(name="--sale", help="With --all: the sale.")]
All = Annotated[
    bool,
    Parameter(
        name="--all",
        negative=(),
        help="All orders of a sale that allow it. You may interrupt the command, and run it again.",
    ),
]
Reason = Annotated[str, Parameter(help="Why; it goes on record, and buyers do not see it.")]
Key = Annotated[
    str | None,
    Parameter(
        help="Idempotency key: repeat a command whose result is unclear with the same key, and nothing happens twice."
    ),
]


def _named(state: Written | None) -> OrderState | None:
    return None if state is None else OrderState(state)


@app.command(name="list")
def list_(
    *,
    sale: SaleOption = None,
    round_: RoundOption = None,
    item: ItemOption = None,
    state: StateOption = None,
    buyer: BuyerOption = None,
    since: Since = None,
    until: Until = None,
    limit: OptionalWhole = None,
    after: Annotated[str | None, Parameter(help="Go on after this order.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List orders, newest first, a page at a time.

    Parameters
    ----------
    limit
        How many, 1 to 100; 20 if not given.
    """
    wanted = OrderQuery(
        sale_id=sale, round_=round_, item_id=item, state=_named(state), buyer=buyer, since=since, until=until
    )
    found = call(requests.find_orders(wanted, after=after, limit=limit), url=url)
    if as_json:
        print_json(found)
        return
    listed = table("order", "sale", "buyer", "units", "state", "price", "accepted")
    for each in found["orders"]:
        order = each["order"]
        listed.add_row(
            order["order_id"],
            order["sale_id"],
            escape(each["user"]),
            str(order["quantity"]),
            order["state"],
            money.shown(order["price_cents"], order["currency"]),
            instant(order["created_at"]),
        )
    console().print(listed if found["orders"] else "No orders.")
    if found["next"] is not None:
        console().print(f"There are more: --after {found['next']}")


@app.command
def export(
    *,
    kind: Annotated[
        Literal["csv", "jsonl"], Parameter(name="--format", help="CSV, or a JSON document a line.")
    ] = "csv",
    sale: SaleOption = None,
    round_: RoundOption = None,
    item: ItemOption = None,
    state: StateOption = None,
    buyer: BuyerOption = None,
    since: Since = None,
    until: Until = None,
    codes: Annotated[
        bool,
        Parameter(negative=(), help="With their voucher codes; from then on these count as shown to their buyers."),
    ] = False,
    out: Out = None,
    url: Url = None,
) -> None:
    """Export all orders that match, newest first, portion by portion. In CSV, a cell that a spreadsheet would take for
    a formula
    begins with an apostrophe."""
    with nullcontext(sys.stdout.buffer) if out is None else _whole(out) as file, connected(url) as client:
        portions = client.export_orders(
            kind,
            sale_id=sale,
            round_=round_,
            item_id=item,
            state=_named(state),
            buyer=buyer,
            since=since,
            until=until,
            codes=codes,
        )
        for portion in portions:
            file.write(portion)


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """Yields a file that appears, or replaces an earlier one, only when all of it is written."""
    is_stream = path.exists() and not path.is_file()  # a pipe or a device, which cannot be replaced
    part = path if is_stream else path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        if not is_stream:
            part.replace(path)
    except OSError as error:
        raise SeckillError(f"{path} cannot be written ({error.strerror}).") from error
    finally:
        if not is_stream:
            with suppress(OSError):  # usually it was renamed
                part.unlink()


@app.command
def cancel(
    order_id: OrderId = None,
    *,
    sale: WholeSale = None,
    every: All = False,
    reason: Reason,
    key: Key = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Cancel an unpaid order, or all of a sale; its units are on sale again within a second."""
    if (whole := _whole_sale(order_id, sale, every, key)) is not None:
        wish = partial(_cancel, reason=reason)
        act_on_all(whole, OrderState.UNPAID, "cancelled", wish, as_json=as_json, url=url)
        return
    _print(call(_cancel(str(order_id), key or secrets.token_urlsafe(), reason=reason), url=url), as_json)


@app.command
def refund(
    order_id: OrderId = None,
    *,
    sale: WholeSale = None,
    every: All = False,
    reason: Reason,
    return_unit: Annotated[bool, Parameter(help="The order's units go back on sale, or stay sold.")],
    amount_cents: Annotated[
        OptionalWhole, Parameter(help="In minor units of the currency; all that is left, if not given.")
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Refund a paid order, in full or in part, or all of a sale in full. The keeper asks the payment provider until it
    is done."""
    wish = partial(_refund, reason=reason, return_unit=return_unit, amount_cents=amount_cents)
    if (whole := _whole_sale(order_id, sale, every, key)) is not None:
        if amount_cents is not None:
            raise SeckillError("With --all, everything that is left of each order goes back: leave --amount-cents out.")
        act_on_all(whole, OrderState.PAID, "refunded", wish, as_json=as_json, url=url)
        return
    _print(call(wish(str(order_id), key or secrets.token_urlsafe()), url=url), as_json)


def _whole_sale(order_id: str | None, sale: str | None, every: bool, key: str | None) -> str | None:
    """Returns the sale if all its orders are meant, and None if it is one order."""
    if order_id is not None and sale is None and not every:
        return None
    if order_id is None and sale is not None and every and key is None:
        return sale
    raise SeckillError("Name one order, or all of a sale: --sale SALE --all, without --key.")


def _cancel(order_id: str, key: str, *, reason: str) -> Request[Any]:
    return requests.cancel_order(order_id, reason=reason, key=key)


def _refund(
    order_id: str, key: str, *, reason: str, return_unit: bool, amount_cents: int | None = None
) -> Request[Any]:
    return requests.refund_order(order_id, reason=reason, return_unit=return_unit, amount_cents=amount_cents, key=key)


def _print(order: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(order)
        return
    back = money.shown(order["refunded_cents"], order["currency"])
    price = money.shown(order["price_cents"], order["currency"])
    refunded = f", {back} of {price} refunded" if order["refunded_cents"] else ""
    console().print(f"Order {order['order_id']} is {order['state']}{refunded}.")
