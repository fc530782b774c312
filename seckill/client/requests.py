"""What can be asked of the API: the one place that spells a client's paths and bodies. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from seckill.client.documents import (
    Audit,
    Claimed,
    Custody,
    DeadLetter,
    DeadLetters,
    Order,
    Orders,
    Rounds,
    Sale,
    Sales,
)
from seckill.domain.order import OrderState

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[T]):
    method: str
    path: str
    answer: type[T]
    body: Mapping[str, Any] | None = None
    key: str | None = None  # its Idempotency-Key
    for_anybody: bool = False  # no token is sent
    repeatable: bool = False  # done twice, it is done once
    wait_s: float = 0.0  # how long the API may hold back its answer


def create_sale(
    title: str,
    *,
    units: int,
    begins_at: datetime,
    ends_at: datetime,
    limit_per_buyer: int = 1,
    price_cents: int = 0,
    currency: str = "CNY",
    repeat: str | None = None,
    timezone: str | None = None,
    pay_within_s: int | None = None,
    cool_down_s: int | None = None,
    lanes: int | None = None,
) -> Request[Sale]:
    body = {
        "title": title,
        "units": units,
        "limit_per_buyer": limit_per_buyer,
        "price_cents": price_cents,
        "currency": currency,
        "begins_at": begins_at.isoformat(),
        "ends_at": ends_at.isoformat(),
        "repeat": repeat,
        "timezone": timezone,
        "pay_within_s": pay_within_s,
        "cool_down_s": cool_down_s,
        "lanes": lanes,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return Request(method="POST", path="/v1/sales", answer=Sale, body=given)


def sales(before: str | None = None) -> Request[Sales]:
    return Request(
        method="GET", path=f"/v1/sales{_query(before=before)}", answer=Sales, for_anybody=True, repeatable=True
    )


def sale(sale_id: str) -> Request[Sale]:
    return Request(method="GET", path=_sale(sale_id), answer=Sale, for_anybody=True, repeatable=True)


def change_sale(sale_id: str, **changes: object) -> Request[Sale]:
    return Request(method="PATCH", path=_sale(sale_id), answer=Sale, body=changes)


def act_on_sale(sale_id: str, verb: str) -> Request[Sale]:
    """`pause`, `resume` or `close`."""
    return Request(method="POST", path=f"{_sale(sale_id)}/{verb}", answer=Sale)


def rounds(sale_id: str, *, before: str | None = None, round_: str | None = None) -> Request[Rounds]:
    query = _query(before=before, round=round_)
    return Request(method="GET", path=f"{_sale(sale_id)}/rounds{query}", answer=Rounds, repeatable=True)


def custody(sale_id: str, round_: str | None = None) -> Request[Custody]:
    query = _query(round=round_)
    return Request(method="GET", path=f"{_sale(sale_id)}/custody{query}", answer=Custody, repeatable=True)


def claim(sale_id: str, quantity: int, key: str) -> Request[Claimed]:
    body = {"quantity": quantity}
    return Request(method="POST", path=f"{_sale(sale_id)}/orders", answer=Claimed, body=body, key=key, repeatable=True)


def order(order_id: str, *, wait_s: float = 0.0, seen: OrderState | None = None) -> Request[Order]:
    query = _query(wait=f"{wait_s:g}", seen=seen) if wait_s else ""
    return Request(method="GET", path=f"{_order(order_id)}{query}", answer=Order, repeatable=True, wait_s=wait_s)


def orders(*, cursor: str | None = None, limit: int | None = None) -> Request[Orders]:
    query = _query(cursor=cursor, limit=limit)
    return Request(method="GET", path=f"/v1/orders{query}", answer=Orders, repeatable=True)


def act_on_order(order_id: str, verb: str) -> Request[Order]:
    """`pay` or `cancel`."""
    return Request(method="POST", path=f"{_order(order_id)}/{verb}", answer=Order, repeatable=True)


def audit(*, full: bool = False) -> Request[Audit]:
    query = _query(full="true" if full else None)
    return Request(method="GET", path=f"/v1/admin/audit{query}", answer=Audit, repeatable=True)


def dead_letters() -> Request[DeadLetters]:
    return Request(method="GET", path="/v1/admin/dead", answer=DeadLetters, repeatable=True)


def dead_letter(letter_id: str) -> Request[DeadLetter]:
    return Request(method="GET", path=_letter(letter_id), answer=DeadLetter, repeatable=True)


def act_on_dead_letter(letter_id: str, verb: str) -> Request[DeadLetter]:
    """`replay` or `discard`."""
    return Request(method="POST", path=f"{_letter(letter_id)}/{verb}", answer=DeadLetter)


def _sale(sale_id: str) -> str:
    return f"/v1/sales/{quote(sale_id, safe='')}"


def _order(order_id: str) -> str:
    return f"/v1/orders/{quote(order_id, safe='')}"


def _letter(letter_id: str) -> str:
    return f"/v1/admin/dead/{quote(letter_id, safe='')}"


def _query(**parameters: object) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given, quote_via=quote)}" if given else ""
