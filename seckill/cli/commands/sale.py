"""Sales, over the API, whose checks apply to all callers."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import ACTED_WITHIN_S, call
from seckill.cli.door_options import NO_AUDIENCE, NO_DOOR, AudienceOptions, DoorOptions
from seckill.cli.every_sale import next_opening, pause_all, resume_all
from seckill.cli.goods_options import NO_OPTIONS, GoodsOptions
from seckill.cli.item_options import ItemId, Items, items_table, read_items
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, OptionalWhole, SaleId, Url, Whole, Why, moment, moment_to_come
from seckill.cli.sale_figures import print_history, print_summary, print_timeline, write_csv
from seckill.client import figure_requests, requests
from seckill.domain import money
from seckill.domain.door import PassKind
from seckill.domain.line import LineOrder
from seckill.domain.recurrence import BadRecurrence, zone_of
from seckill.errors import SeckillError

app = App(
    name="sale",
    help="Create, duplicate, list, show, look back at, change, publish, pause, resume and close sales; add stock.",
)

_WRITTEN = "such as 2026-11-20T10:00:00+08:00, without an offset in the time zone; or +5m, from now."
Begins = Annotated[
    datetime | None, Parameter(converter=moment_to_come, help=f"When it begins, {_WRITTEN} Now, if not given.")
]
Ends = Annotated[
    datetime | None,
    Parameter(
        converter=moment_to_come,
        help=f"When it ends, {_WRITTEN} A day after its beginning, or an hour if it repeats, if not given.",
    ),
]
CopyBegins = Annotated[
    datetime | None,
    Parameter(
        converter=moment_to_come,
        help=f"When it begins, {_WRITTEN} If not given, as there, or at that time of the first day to come.",
    ),
]
CopyEnds = Annotated[
    datetime | None,
    Parameter(converter=moment_to_come, help=f"When it ends, {_WRITTEN} As long after as there, if not given."),
]
_IN_ITS_ZONE = "such as 2026-11-20T10:00:00+08:00; without an offset it is in the sale's time zone."
OtherBegins = Annotated[
    datetime | None,
    Parameter(converter=moment, help=f"When it begins, {_IN_ITS_ZONE} Cannot change once anybody may have bought."),
]
OtherEnds = Annotated[
    datetime | None, Parameter(converter=moment, help=f"When it ends, {_IN_ITS_ZONE} Can change while it is on, too.")
]
OtherLimit = Annotated[OptionalWhole, Parameter(name="--limit", help="How many one buyer may have.")]
Everybody = Annotated[
    bool, Parameter(negative=(), help="It is for everybody: takes away --group, --early and --listed.")
]
ChangedItem = Annotated[
    str | None,
    Parameter(name="--item", help="--title, --external-id and --image are those of this item, by its id."),
]
Draft = Annotated[bool, Parameter(negative=(), help="Buyers do not see it until `sale publish`.")]
Limit = Annotated[Whole, Parameter(help="How many one buyer may have.")]
Currency = Annotated[str, Parameter(help="Its code, as in ISO 4217.")]
Timezone = Annotated[str, Parameter(help="Its time zone, such as Asia/Shanghai.")]
Vouchers = Annotated[
    bool, Parameter(negative=(), help="Give a code with each unit; it opens after `voucher upload` of as many.")
]
Key = Annotated[str | None, Parameter(help="Idempotency key: with the same key again, no second sale is made.")]
RoundOption = Annotated[
    str | None, Parameter(name="--round", help="A round other than the current one; `sale show` tells the last five.")
]
_THEN = "such as 2026-11-20T10:00:00+08:00."
Since = Annotated[
    datetime | None, Parameter(name="--from", converter=moment, help=f"Then or later, {_THEN} Its start, if not given.")
]
Until = Annotated[datetime | None, Parameter(name="--to", converter=moment, help=f"Before, {_THEN} Now, if not given.")]
AsCsv = Annotated[bool, Parameter(name="--csv", help="For a spreadsheet.", negative=(), show_default=False)]
OneSale = Annotated[str | None, Parameter(help="The sale's id, as `seckill sale list` shows it.")]
PauseAll = Annotated[bool, Parameter(name="--all", negative=(), help="All sales that are on or to come.")]
ResumeAll = Annotated[bool, Parameter(name="--all", negative=(), help="Those that `sale pause --all` has paused.")]
ROUNDS_SHOWN = 5
_OF_REPEATING = ("repeat", "next_rounds", "round")
_NO_ZONE = ("timezone", "UTC")
_OF_PASS = ("pass", "pass_work")
_OF_LINE = ("order", "waiting_list", "lined", "beacon")
_OF_DOOR = (*_OF_PASS, "audience", "list_buyers")
_NOT_SHOWN = ("price_cents", "currency", "server_time", "items")
_OF_GOODS = tuple(field.name for field in fields(GoodsOptions))
# In the order in which a unit passes through them. They add up to the total.
PLACES = ("available", "queued", "unpaid", "paid", "kept", "returning", "dead")
Confirm = Annotated[
    Literal["gate", "ledger"],
    Parameter(
        help="When a buyer hears yes: in milliseconds, as soon as the gate has the order; or when the ledger has it, "
        "so that even a gate that loses its memory loses no yes."
    ),
]
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
    units: OptionalWhole = None,
    items: Items = None,
    limit: Limit = 1,
    price_cents: OptionalWhole = None,
    currency: Currency = "CNY",
    begins: Begins = None,
    ends: Ends = None,
    repeat: str | None = None,
    timezone: Timezone = "UTC",
    pay_within: OptionalWhole = None,
    cool_down: OptionalWhole = None,
    lanes: Whole = 1,
    confirm: Confirm = "gate",
    goods: GoodsOptions = NO_OPTIONS,
    door: DoorOptions = NO_DOOR,
    vouchers: Vouchers = False,
    draft: Draft = False,
    key: Key = None,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Announce a sale. It begins now and lasts a day unless told otherwise. With --repeat, that is its first round.

    Parameters
    ----------
    title
        What is sold.
    units
        How many there are; of a sale with items, left out.
    price_cents
        Of a unit, in minor units of the currency: 9900 is 99.00 CNY, or 9900 JPY; free, if not given.
    repeat
        Again and again, with full stock: daily, or cron with five fields such as "0 10 * * MON-FRI".
    pay_within
        Seconds that a buyer has to pay; what SECKILL_PAY_WITHIN_S of the API says, if not given.
    cool_down
        Seconds that a buyer waits after letting an order lapse, doubled with each; SECKILL_COOL_DOWN_S, if not given.
    lanes
        How many lanes of the gate it is spread over: more than 1 for a sale that one server cannot carry.
    """
    length = timedelta(days=1) if repeat is None else timedelta(hours=1)
    begins_at, ends_at = _window(begins, ends, _zone(timezone), length)
    request = requests.create_sale(
        title,
        units=units,
        limit_per_buyer=limit,
        price_cents=price_cents,
        currency=currency,
        begins_at=begins_at,
        ends_at=ends_at,
        repeat=repeat,
        timezone=None if timezone == "UTC" else timezone,
        pay_within_s=pay_within,
        cool_down_s=cool_down,
        lanes=None if lanes == 1 else lanes,
        confirm=confirm,
        items=read_items(items, units),
        key=key,
        **(goods.given() | door.given()),
        **({"published": False} if draft else {}) | ({"vouchers": True} if vouchers else {}),
    )
    _print_one(call(request, url=url, why=reason), as_json)


@app.command(name="list")
def list_(*, as_json: AsJson = False, url: Url = None) -> None:
    """List all sales."""
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
    """Show a sale, its last rounds, where every unit of its round is, and what came of it."""
    sale = call(requests.sale(sale_id), url=url)
    rounds = call(requests.rounds(sale_id, round_=round_), url=url)["rounds"]
    custody = call(requests.custody(sale_id, round_), url=url)
    summary = call(figure_requests.summary(sale_id, round_), url=url)
    if round_ is not None:
        sale |= rounds[0]
    if as_json:
        print_json(sale | {"rounds": rounds[:ROUNDS_SHOWN], "custody": custody, "summary": summary})
        return
    _print_facts(sale)
    if round_ is None and sale["repeat"] is not None:
        _print_rounds(rounds[:ROUNDS_SHOWN])
    _print_custody(custody, repeats=sale["repeat"] is not None)
    if sale.get("items"):
        console().print(items_table(sale, custody))
    print_summary(summary, repeats=sale["repeat"] is not None)


@app.command
def history(
    sale_id: SaleId,
    *,
    since: Since = None,
    until: Until = None,
    step: OptionalWhole = None,
    round_: RoundOption = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show how a sale stood, step by step, as the console's charts do.

    Parameters
    ----------
    step
        Seconds from one line to the next; as many as give a chart, if not given.
    """
    found = call(
        figure_requests.history(sale_id, since=since, until=until, step_s=step, round_=round_),
        url=url,
    )
    if as_json:
        print_json(found)
    elif as_csv:
        write_csv(found)
    else:
        print_history(found)


@app.command
def timeline(sale_id: SaleId, *, limit: OptionalWhole = None, as_json: AsJson = False, url: Url = None) -> None:
    """Tell what happened to a sale, newest first: starts, sell-outs, returns, changes and by whom, alarms.

    Parameters
    ----------
    limit
        How many, 1 to 500; 100 if not given.
    """
    found = call(figure_requests.timeline(sale_id, limit=limit), url=url)
    if as_json:
        print_json(found)
    else:
        print_timeline(found["entries"])


@app.command
def pause(
    sale_id: OneSale = None, *, every: PauseAll = False, reason: Why = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Stop selling for now: the current round of one sale, or of all. Existing orders stay, and can be paid for."""
    if _means_all(sale_id, every):
        pause_all(reason, as_json=as_json, url=url)
        return
    request = requests.act_on_sale(str(sale_id), "pause", reason)
    paused = call(request, url=url, within_s=ACTED_WITHIN_S)
    _print_one(paused, as_json)
    if not as_json and (still := next_opening(paused)) is not None:
        console().print(escape(still))


@app.command
def resume(
    sale_id: OneSale = None, *, every: ResumeAll = False, reason: Why = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Resume selling."""
    if _means_all(sale_id, every):
        resume_all(reason, as_json=as_json, url=url)
        return
    _print_one(call(requests.act_on_sale(str(sale_id), "resume", reason), url=url), as_json)


@app.command
def close(sale_id: SaleId, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """End a sale for good, with all its rounds to come."""
    _print_one(call(requests.act_on_sale(sale_id, "close", reason), url=url, within_s=ACTED_WITHIN_S), as_json)


@app.command
def change(
    sale_id: SaleId,
    *,
    title: str | None = None,
    begins: OtherBegins = None,
    ends: OtherEnds = None,
    limit: OtherLimit = None,
    cool_down: OptionalWhole = None,
    item: ChangedItem = None,
    goods: GoodsOptions = NO_OPTIONS,
    audience: AudienceOptions = NO_AUDIENCE,
    everybody: Everybody = False,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Change a sale: its window, its limit, who may buy and what is told about it. Of one that repeats, the window of
    the current round only. An empty text takes away what is there.

    Parameters
    ----------
    title
        What is sold.
    cool_down
        Seconds that a buyer waits after letting an order lapse, doubled with each; 0: none.
    """
    changes: dict[str, object] = {name: value or None for name, value in goods.given().items()}
    changes |= {"title": title} if title else {}
    if item is not None:
        changes = _of_item(item, changes)
    changes |= {"limit_per_buyer": limit} if limit is not None else {}
    changes |= {"cool_down_s": cool_down} if cool_down is not None else {}
    changes |= audience.given()
    if everybody and "audience" in changes:
        raise SeckillError("--everybody takes away --group, --early and --listed: leave them out, or it.")
    changes |= {"audience": None} if everybody else {}
    window = {"begins_at": begins, "ends_at": ends}
    if any(instant is not None and instant.tzinfo is None for instant in window.values()):
        zone = _zone(call(requests.sale(sale_id), url=url)["timezone"])
        window = {name: _aware(instant, zone) for name, instant in window.items()}
    changes |= {name: instant.isoformat() for name, instant in window.items() if instant is not None}
    _print_one(call(requests.change_sale(sale_id, reason, **changes), url=url), as_json)


@app.command
def duplicate(
    sale_id: SaleId,
    *,
    title: str | None = None,
    begins: CopyBegins = None,
    ends: CopyEnds = None,
    timezone: Timezone = "UTC",
    goods: GoodsOptions = NO_OPTIONS,
    key: Key = None,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Make a draft with the goods, rules and items of a sale, without its orders, codes and list of buyers. An empty
    text
    leaves out what is there. `sale publish` shows it to buyers.

    Parameters
    ----------
    title
        What is sold; the same, if not given.
    """
    zone = _zone(timezone)
    window = {"begins_at": _aware(begins, zone), "ends_at": _aware(ends, zone)}
    changes: dict[str, object] = {name: value or None for name, value in goods.given().items()}
    changes |= {name: instant.isoformat() for name, instant in window.items() if instant is not None}
    changes |= {"title": title} if title else {}
    _print_one(call(requests.duplicate_sale(sale_id, changes, key=key), url=url, why=reason), as_json)


@app.command
def publish(sale_id: SaleId, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Publish a sale: from now on, buyers see it."""
    _print_one(call(requests.change_sale(sale_id, reason, published=True), url=url), as_json)


@app.command
def hide(sale_id: SaleId, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Hide a sale: to buyers it does not exist any more, except in orders that they have."""
    _print_one(call(requests.change_sale(sale_id, reason, published=False), url=url), as_json)


@app.command
def add_stock(
    sale_id: SaleId,
    units: Whole,
    *,
    item: ItemId = None,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Put more units on sale.

    Parameters
    ----------
    units
        How many more.
    """
    _print_one(call(requests.add_units(sale_id, units, item), url=url, why=reason), as_json)


def _of_item(item_id: str, changes: dict[str, object]) -> dict[str, object]:
    """Returns changes that would be the sale's own as changes of one of its items."""
    item: dict[str, object] = {"item_id": item_id}
    item |= {name: changes[name] for name in ("title", "external_id") if name in changes}
    match changes.get("images", ()):
        case [image]:
            item["image"] = image or None
        case [_, *_]:
            raise SeckillError("--image: an item has one picture.")
    of_sale = {name: value for name, value in changes.items() if name not in ("title", "external_id", "images")}
    return of_sale | {"items": [item]}


def _means_all(sale_id: str | None, every: bool) -> bool:
    if (sale_id is None) is not every:
        raise SeckillError("Name one sale, or say --all.")
    return every


def _zone(timezone: str) -> tzinfo:
    try:
        return zone_of(timezone)
    except BadRecurrence as error:
        raise SeckillError(f"--timezone: {error}.") from None


def _window(
    begins: datetime | None, ends: datetime | None, zone: tzinfo, length: timedelta
) -> tuple[datetime, datetime]:
    begins_at = _aware(begins, zone) or datetime.now(UTC)
    return begins_at, _aware(ends, zone) or begins_at + length


def _aware(instant: datetime | None, zone: tzinfo) -> datetime | None:
    return instant if instant is None or instant.tzinfo is not None else instant.replace(tzinfo=zone)


def _state(sale: dict[str, Any]) -> str:
    hidden = ", hidden" if sale.get("published") is False else ""
    return f"[{STATE_COLOURS[sale['state']]}]{sale['state']}[/]{hidden}"


def _price(sale: dict[str, Any]) -> str:
    shown = money.shown(sale["price_cents"], sale["currency"]) if sale["price_cents"] else "free"
    prices = {item["price_cents"] for item in sale.get("items", ())}
    return f"from {shown}" if len(prices) > 1 else shown


def _print_one(sale: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(sale)
        return
    _print_facts(sale)
    if sale.get("items"):
        console().print(items_table(sale))


def _print_facts(sale: dict[str, Any]) -> None:
    facts = table()
    for name, value in (sale | {"state": _state(sale), "price": _price(sale)}).items():
        if name in _NOT_SHOWN or (sale["repeat"] is None and (name in _OF_REPEATING or (name, value) == _NO_ZONE)):
            continue
        if (
            value is None
            or (name in _OF_GOODS and not value)
            or (name == "waits_for_codes" and not sale.get("vouchers"))
        ):
            continue
        if name in _OF_LINE and sale["order"] == LineOrder.PRESS and not sale["waiting_list"]:
            continue
        if name in _OF_DOOR and (not value or (name in _OF_PASS and sale["pass"] == PassKind.NONE)):
            continue
        if name == "list_price_cents":
            name, value = "list_price", money.shown(value, sale["currency"])
        if name == "next_rounds" and value:
            value = [instant(each) for each in value]
        elif name == "next_rounds":
            value = "none: it is closed, and its repetition has ended" if sale["state"] == "ended" else "none"
        shown = value if name == "state" else escape(_lines(value))
        facts.add_row(f"[bold]{name}[/]", shown)
    console().print(facts)


def _lines(value: object) -> str:
    """Shows each value of a list on a line of its own."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _print_rounds(rounds: list[dict[str, Any]]) -> None:
    listed = table("round", "state", "units", "begins", "ends")
    for each in rounds:
        begins, ends = instant(each["begins_at"]), instant(each["ends_at"])
        listed.add_row(escape(each["round"]), _state(each), str(each["units"]), begins, ends)
    output = console()
    output.print("\nThe last rounds; `--round ROUND` shows one of them:\n")
    output.print(listed)


def _print_custody(custody: dict[str, Any], *, repeats: bool) -> None:
    """Prints the places as a sum, with the total below the line."""
    width = len(str(custody["total"]))
    lines = [f"  {place:<10}{custody[place]:>{width}}" for place in PLACES]
    lines += [f"  {'':<10}{'─' * width}", f"  {'total':<10}{custody['total']:>{width}}"]
    output = console()
    which = f" of round {escape(custody['round'])}" if repeats else ""
    output.print(f"\nWhere every unit{which} is:\n")
    output.print("\n".join(lines))
    if custody["next_return_at"] is not None:
        output.print(f"\nThe next unpaid order is over at {instant(custody['next_return_at'])}.")
