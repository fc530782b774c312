"""The operator's hand, over the API: one set of checks for everybody."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.client import call
from seckill.cli.parameters import AsJson, OptionalWhole, SaleId, Url, Whole
from seckill.cli.printing import console, instant, print_json, table

app = App(name="sale", help="Create, list, show, pause, resume and close sales; add stock.")

_WRITTEN = "such as 2026-11-20T10:00:00+08:00; UTC if there is no offset."
Begins = Annotated[datetime | None, Parameter(help=f"When it begins, {_WRITTEN} Now, if not given.")]
Ends = Annotated[datetime | None, Parameter(help=f"When it ends, {_WRITTEN} A day after its beginning, if not given.")]
# The same colours for the same states everywhere.
STATE_COLOURS = {
    "scheduled": "bright_black",
    "open": "green",
    "paused": "yellow",
    "sold_out": "red",
    "ended": "bright_black",
}


@app.command
def create(
    title: str,
    *,
    units: Whole,
    limit: Whole = 1,
    price_cents: Whole = 0,
    currency: str = "CNY",
    begins: Begins = None,
    ends: Ends = None,
    pay_within: OptionalWhole = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Announce a sale. It begins now and lasts a day unless told otherwise.

    Parameters
    ----------
    title
        What is sold.
    units
        How many there are.
    limit
        How many one buyer may have.
    price_cents
        Price of one unit in cents (9900 is 99.00); 0: free.
    currency
        Three capital letters.
    pay_within
        Seconds that a buyer has to pay; what SECKILL_PAY_WITHIN_S of the API says, if not given.
    """
    begins_at = _aware(begins) or datetime.now(UTC)
    ends_at = _aware(ends) or begins_at + timedelta(days=1)
    body = {
        "title": title,
        "units": units,
        "limit_per_buyer": limit,
        "price_cents": price_cents,
        "currency": currency,
        "begins_at": begins_at.isoformat(),
        "ends_at": ends_at.isoformat(),
    }
    if pay_within is not None:
        body["pay_within_s"] = pay_within
    _print_one(call("POST", "/v1/sales", body, url=url), as_json)


@app.command(name="list")
def list_(*, as_json: AsJson = False, url: Url = None) -> None:
    """All sales."""
    found = call("GET", "/v1/sales", url=url, public=True)
    if as_json:
        print_json(found)
        return
    listed = table("id", "title", "state", "units", "limit", "price", "begins", "ends")
    for sale in found["sales"]:
        listed.add_row(
            sale["id"],
            escape(sale["title"]),
            _state(sale),
            str(sale["units"]),
            str(sale["limit_per_buyer"]),
            _price(sale),
            instant(sale["begins_at"]),
            instant(sale["ends_at"]),
        )
    console().print(listed if found["sales"] else "No sales yet. `seckill sale create TITLE --units N` makes one.")


@app.command
def show(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """One sale."""
    _print_one(call("GET", _path(sale_id), url=url, public=True), as_json)


@app.command
def pause(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """Stop selling for now."""
    _print_one(call("POST", f"{_path(sale_id)}/pause", url=url), as_json)


@app.command
def resume(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """Sell on."""
    _print_one(call("POST", f"{_path(sale_id)}/resume", url=url), as_json)


@app.command
def close(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """End a sale for good."""
    _print_one(call("POST", f"{_path(sale_id)}/close", url=url), as_json)


@app.command
def add_stock(sale_id: SaleId, units: Whole, *, as_json: AsJson = False, url: Url = None) -> None:
    """Put more units on sale.

    Parameters
    ----------
    units
        How many more.
    """
    _print_one(call("PATCH", _path(sale_id), {"add_units": units}, url=url), as_json)


def _path(sale_id: str) -> str:
    return f"/v1/sales/{quote(sale_id, safe='')}"


def _aware(instant: datetime | None) -> datetime | None:
    return instant.replace(tzinfo=UTC) if instant is not None and instant.tzinfo is None else instant


def _state(sale: dict[str, Any]) -> str:
    return f"[{STATE_COLOURS[sale['state']]}]{sale['state']}[/]"


def _price(sale: dict[str, Any]) -> str:
    return f"{sale['price_cents'] / 100:.2f} {sale['currency']}" if sale["price_cents"] else "free"


def _print_one(sale: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(sale)
        return
    facts = table()
    for name, value in (sale | {"state": _state(sale), "price": _price(sale)}).items():
        if name not in ("price_cents", "currency", "server_time"):
            facts.add_row(f"[bold]{name}[/]", value if name == "state" else escape(str(value)))
    console().print(facts)
