"""The option that lists the items of a sale, and how commands show items."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

from seckill.cli.output import table
from seckill.domain import money
from seckill.errors import SeckillError

_ITEM = re.compile(r"(.+?):([0-9]{1,18})(?::([0-9]{1,18}))?(?::([^:]+))?")

Items = Annotated[
    list[str] | None,
    Parameter(
        name="--item",
        negative=(),
        help="A size or a colour: TITLE:UNITS, TITLE:UNITS:PRICE_CENTS or TITLE:UNITS:PRICE_CENTS:EXTERNAL_ID, such as "
        "M:50:9900; repeat it for each. They share one limit per buyer.",
    ),
]
ItemId = Annotated[str | None, Parameter(name="--item", help="The id of the item, if the sale has items.")]


def read_items(texts: Sequence[str] | None, units: int | None) -> list[dict[str, Any]] | None:
    """Returns the items under the API's names, or None if the sale has units but no items."""
    if not texts and units is None:
        raise SeckillError("--units: say how many there are, or give an --item for each size or colour.")
    return [_read(text) for text in texts] if texts else None


def _read(text: str) -> dict[str, Any]:
    found = _ITEM.fullmatch(text)
    if found is None:
        raise SeckillError(f'--item: write "{text}" as TITLE:UNITS or TITLE:UNITS:PRICE_CENTS, such as M:50:9900.')
    title, units, price_cents, external_id = found.groups()
    item: dict[str, Any] = {"title": title, "units": int(units)}
    if price_cents is not None:
        item["price_cents"] = int(price_cents)
    if external_id is not None:
        item["external_id"] = external_id
    return item


def items_table(sale: dict[str, Any], custody: dict[str, Any] | None = None) -> Table:
    """`custody`: where every unit is, if that is to be shown."""
    places = () if custody is None else ("available", "sold")
    listed = table("item", "title", "price", "units", *places, "external id")
    units = {} if custody is None else {each["item_id"]: each for each in custody["items"]}
    for item in sale["items"]:
        price = money.shown(item["price_cents"], sale["currency"]) if item["price_cents"] else "free"
        where = [str(units[item["item_id"]][place]) for place in places]
        facts = (item["item_id"], escape(item["title"]), price, str(item["units"]), *where)
        listed.add_row(*facts, escape(item.get("external_id") or ""))
    return listed
