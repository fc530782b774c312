"""The operator's commands, over the API: one set of checks for all callers."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.client import call
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, OptionalWhole, SaleId, Url, Whole, moment
from seckill.client import requests
from seckill.domain import money
from seckill.domain.recurrence import BadRecurrence, zone_of
from seckill.errors import SeckillError

app = App(name="sale", help="Create, list, show, pause, resume and close sales; add stock.")

_WRITTEN = "such as 2026-11-20T10:00:00+08:00; without an offset it is in the time zone."
Begins = Annotated[datetime | None, Parameter(converter=moment, help=f"When it begins, {_WRITTEN} Now, if not given.")]
Ends = Annotated[
    datetime | None,
    Parameter(
        converter=moment,
        help=f"When it ends, {_WRITTEN} A day after its beginning, or an hour if it repeats, if not given.",
    ),
]
RoundOption = Annotated[
    str | None, Parameter(name="--round", help="Another round than the current one; `sale show` tells the last five.")
]
ROUNDS_SHOWN = 5
_OF_REPEATING = ("repeat", "timezone", "next_rounds", "round")
# In the order in which a unit passes through them. They add up to the total.
PLACES = ("available", "queued", "unpaid", "paid", "returning", "dead")
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
    repeat: str | None = None,
    timezone: str = "UTC",
    pay_within: OptionalWhole = None,
    cool_down: OptionalWhole = None,
    lanes: Whole = 1,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Announce a sale. It begins now and lasts a day unless told otherwise. With --repeat, that is its first round.

    Parameters
    ----------
    title
        What is sold.
    units
        How many there are.
    limit
        How many one buyer may have.
    price_cents
        Price of one unit in minor units of the currency: 9900 is 99.00 CNY, or 9900 JPY; 0: free.
    currency
        Its code, as in ISO 4217.
    repeat
        Again and again, with full stock: daily, or cron with five fields such as "0 10 * * MON-FRI".
    timezone
        Whose clock it goes by, such as Asia/Shanghai.
    pay_within
        Seconds that a buyer has to pay; what SECKILL_PAY_WITHIN_S of the API says, if not given.
    cool_down
        Seconds that a buyer waits who has let an order lapse, twice as long with each, 0: not at all; what
        SECKILL_COOL_DOWN_S of the API says, if not given.
    lanes
        How many lanes of the gate it is spread over: more than 1 for a sale that one server cannot carry.
    """
    zone = _zone(timezone)
    begins_at = _aware(begins, zone) or datetime.now(UTC)
    ends_at = _aware(ends, zone) or begins_at + (timedelta(days=1) if repeat is None else timedelta(hours=1))
    request = requests.create_sale(
        title,
        units=units,
        limit_per_buyer=limit,
        price_cents=price_cents,
        currency=currency,
        begins_at=begins_at,
        ends_at=ends_at,
        repeat=repeat,
        timezone=None if repeat is None else timezone,
        pay_within_s=pay_within,
        cool_down_s=cool_down,
        lanes=None if lanes == 1 else lanes,
    )
    _print_one(call(request, url=url), as_json)


@app.command(name="list")
def list_(*, as_json: AsJson = False, url: Url = None) -> None:
    """All sales."""
    found = call(requests.sales(), url=url)
    while found.get("older"):
        earlier = call(requests.sales(before=found["older"]), url=url)
        found |= {"sales": earlier["sales"] + found["sales"], "older": earlier["older"]}
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
def show(sale_id: SaleId, *, round_: RoundOption = None, as_json: AsJson = False, url: Url = None) -> None:
    """One sale, its last rounds, and where every unit of its round is."""
    sale = call(requests.sale(sale_id), url=url)
    rounds = call(requests.rounds(sale_id, round_=round_), url=url)["rounds"]
    custody = call(requests.custody(sale_id, round_), url=url)
    if round_ is not None:
        sale |= rounds[0]
    if as_json:
        print_json(sale | {"rounds": rounds[:ROUNDS_SHOWN], "custody": custody})
        return
    _print_one(sale, as_json)
    if round_ is None and sale["repeat"] is not None:
        _print_rounds(rounds[:ROUNDS_SHOWN])
    _print_custody(custody, repeats=sale["repeat"] is not None)


@app.command
def pause(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """Stop selling for now."""
    _print_one(call(requests.act_on_sale(sale_id, "pause"), url=url), as_json)


@app.command
def resume(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """Sell on."""
    _print_one(call(requests.act_on_sale(sale_id, "resume"), url=url), as_json)


@app.command
def close(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """End a sale for good."""
    _print_one(call(requests.act_on_sale(sale_id, "close"), url=url), as_json)


@app.command
def add_stock(sale_id: SaleId, units: Whole, *, as_json: AsJson = False, url: Url = None) -> None:
    """Put more units on sale.

    Parameters
    ----------
    units
        How many more.
    """
    _print_one(call(requests.change_sale(sale_id, add_units=units), url=url), as_json)


def _zone(timezone: str) -> tzinfo:
    try:
        return zone_of(timezone)
    except BadRecurrence as error:
        raise SeckillError(f"--timezone: {error}.") from None


def _aware(instant: datetime | None, zone: tzinfo) -> datetime | None:
    return instant if instant is None or instant.tzinfo is not None else instant.replace(tzinfo=zone)


def _state(sale: dict[str, Any]) -> str:
    return f"[{STATE_COLOURS[sale['state']]}]{sale['state']}[/]"


def _price(sale: dict[str, Any]) -> str:
    return money.shown(sale["price_cents"], sale["currency"]) if sale["price_cents"] else "free"


def _print_one(sale: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(sale)
        return
    facts = table()
    for name, value in (sale | {"state": _state(sale), "price": _price(sale)}).items():
        if name in ("price_cents", "currency", "server_time") or (sale["repeat"] is None and name in _OF_REPEATING):
            continue
        if name == "next_rounds" and not value:
            value = "none: it is closed, and its repetition has ended" if sale["state"] == "ended" else "none"
        shown = value if name == "state" else escape(_lines(value))
        facts.add_row(f"[bold]{name}[/]", shown)
    console().print(facts)


def _lines(value: object) -> str:
    """Of a list, one in each line."""
    return "\n".join(instant(each) for each in value) if isinstance(value, list) else str(value)


def _print_rounds(rounds: list[dict[str, Any]]) -> None:
    listed = table("round", "state", "units", "begins", "ends")
    for each in rounds:
        begins, ends = instant(each["begins_at"]), instant(each["ends_at"])
        listed.add_row(escape(each["round"]), _state(each), str(each["units"]), begins, ends)
    output = console()
    output.print("\nThe last rounds; `--round ROUND` shows one of them:\n")
    output.print(listed)


def _print_custody(custody: dict[str, Any], *, repeats: bool) -> None:
    """A sum, with the result below the line."""
    width = len(str(custody["total"]))
    lines = [f"  {place:<10}{custody[place]:>{width}}" for place in PLACES]
    lines += [f"  {'':<10}{'─' * width}", f"  {'total':<10}{custody['total']:>{width}}"]
    output = console()
    which = f" of round {escape(custody['round'])}" if repeats else ""
    output.print(f"\nWhere every unit{which} is:\n")
    output.print("\n".join(lines))
    if custody["next_return_at"] is not None:
        output.print(f"\nThe next unpaid order is over at {instant(custody['next_return_at'])}.")
