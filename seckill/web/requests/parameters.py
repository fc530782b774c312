"""Parameters that several addresses read from their path, query or headers in the same way."""

from collections.abc import Sequence
from datetime import MAXYEAR, MINYEAR, datetime

from starlette.requests import Request

from seckill.domain.idempotency_key import LENGTH_MAX, read_key
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Sale
from seckill.engine.orders.buyer_orders import WAIT_S_MAX
from seckill.web.context import Context
from seckill.web.problems import HttpProblem, invalid, no_such
from seckill.web.schemas import to_ms

PAGE_MAX = 100
PAGE_DEFAULT = 20
# May be given several times, which means the same as all values in one.
MANY = ("types",)
ID_DIGITS_MAX = 18  # fits into the ledger's columns


def idempotency_key(value: bytes | None) -> str:
    """Empty if the header is not there."""
    if value is None:
        return ""
    key = read_key(value)
    if key is None:
        raise invalid("Idempotency-Key", f"use 1 to {LENGTH_MAX} printable ASCII characters")
    return key


def only(request: Request, known: Sequence[str]) -> None:
    """Refuses unknown and repeated parameters: a misspelled filter would silently return everything, and of two values
    only one would count."""
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in known:
            there_are = f"there are {', '.join(known)}" if known else "there are none"
            raise invalid(name[:64], f"is no parameter of this address; {there_are}")
        if name not in MANY and given.count(name) > 1:
            raise invalid(name, "is given twice")


def page_size(request: Request, most: int = PAGE_MAX, default: int = PAGE_DEFAULT) -> int:
    text = request.query_params.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= most):
        raise invalid("limit", f"must be a number from 1 to {most}")
    return int(text)


def wait_s(request: Request) -> float:
    try:
        wait_s = float(request.query_params.get("wait", "0"))
    except ValueError:
        wait_s = -1
    if not 0 <= wait_s <= WAIT_S_MAX:
        raise invalid("wait", f"must be a number of seconds from 0 to {WAIT_S_MAX:.0f}")
    return wait_s


def instant(request: Request, name: str) -> int | None:
    """In ms; None: it is not given."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    # In UTC, an instant of the first or the last year may be of a year that there is not.
    if found is None or found.tzinfo is None or not MINYEAR < found.year < MAXYEAR:
        raise invalid(name, "must be a time with its offset, such as 2026-11-20T10:00:00+08:00")
    return to_ms(found)


async def known_sale(ctx: Context, request: Request) -> int | None:
    """Returns the sale that a filter names, if any."""
    public_id = request.query_params.get("sale_id")
    if public_id is None:
        return None
    sale = await ctx.sale_cache.find_any(public_id)
    if sale is None:
        raise invalid("sale_id", "there is no such sale")
    return sale.id


async def known_item(ctx: Context, request: Request) -> tuple[int, int] | None:
    """Returns the item that a filter names, if any, and its sale."""
    public_id = request.query_params.get("item_id")
    if public_id is None:
        return None
    number = ctx.item_ids.number(public_id)
    sale = None if number is None else await ctx.sale_cache.sale_of_item(number)
    if number is None or sale is None:
        raise invalid("item_id", "there is no such item")
    return number, sale.id


async def sale_asked_for(ctx: Context, request: Request, *, hidden_too: bool = False) -> Sale:
    """Returns the sale with its current round, or with the one asked for."""
    find = ctx.sale_cache.find_any if hidden_too else ctx.sale_cache.find
    sale = await find(request.path_params["sale_id"])
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    text = request.query_params.get("round")
    if text is None:
        return sale
    round_id = row_id(text)
    found = None if round_id is None else ctx.sale_cache.sale_of_round(round_id)
    if found is None or found.id != sale.id:
        raise invalid("round", "is not one of the newest rounds of this sale")
    return found


def id_in_path(request: Request, name: str, what: str) -> int:
    """Reads an id. One that cannot be the number of a row does not exist."""
    found = row_id(request.path_params[name])
    if found is None:
        raise no_such(what, request.path_params[name])
    return found


def row_id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= ID_DIGITS_MAX else None
