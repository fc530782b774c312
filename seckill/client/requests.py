"""The requests to the API: the one place that spells a client's paths and bodies. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypedDict, TypeVar
from urllib.parse import quote, urlencode

from seckill.client.documents import (
    Audit,
    Claimed,
    Custody,
    DeadLetter,
    DeadLetters,
    Entry,
    ErasedBuyer,
    Events,
    ExportedOrder,
    Order,
    Orders,
    OrderToPay,
    OwnEntries,
    PassAnswer,
    Rounds,
    Sale,
    Sales,
    UploadedImage,
    Voucher,
    VoucherCounts,
    VouchersAdded,
    Webhook,
    WebhookDeliveries,
    WebhookDelivery,
    Webhooks,
)
from seckill.domain.order import OrderState

T = TypeVar("T")

# How long an upload may take.
UPLOAD_S_MAX = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[T]):
    method: str
    path: str
    answer: type[T]
    body: Mapping[str, Any] | None = None
    content: tuple[str, bytes] | None = None  # instead of a body in JSON: its media type and content
    key: str | None = None  # its Idempotency-Key
    prefer: str | None = None  # RFC 7240
    pass_: str | None = None  # the buyer's pass, for a sale that needs one
    reason: str | None = None  # the operator's reason, for the record
    for_anybody: bool = False  # needs no token; an operator's token shows more
    repeatable: bool = False  # doing it twice has the same effect as once
    wait_s: float = 0.0  # how long the API may hold back its answer


class LineOptions(TypedDict, total=False):
    """How buyers get the units of a sale, see docs/line.md, and by what its limit counts them, see docs/door.md."""

    limit_by: str | None
    limit_group: str | None
    order: Literal["press", "arrival", "draw"] | None
    waiting_list: bool | None
    serve_per_s: int | None
    beacon: bool | None


def create_sale(
    title: str,
    *,
    units: int | None = None,
    begins_at: datetime,
    ends_at: datetime,
    limit_per_buyer: int = 1,
    price_cents: int | None = None,
    currency: str = "CNY",
    repeat: str | None = None,
    timezone: str | None = None,
    pay_within_s: int | None = None,
    cool_down_s: int | None = None,
    lanes: int | None = None,
    confirm: Literal["gate", "ledger"] | None = None,
    key: str | None = None,
    **goods: object,
) -> Request[Sale]:
    """`goods`: items, external_id, metadata, description, images, list_price_cents, terms_url, delivery, return_url,
    published, vouchers, pass, pass_work, audience, limit_by, limit_group, order, waiting_list, serve_per_s and
    beacon, under their names in the API."""
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
        "confirm": confirm,
        **goods,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return Request(method="POST", path="/v1/sales", answer=Sale, body=given, key=key, repeatable=key is not None)


def duplicate_sale(sale_id: str, changes: Mapping[str, object], *, key: str | None = None) -> Request[Sale]:
    path = f"/v1/admin/sales/{quote(sale_id, safe='')}/duplicate"
    return Request(method="POST", path=path, answer=Sale, body=changes, key=key, repeatable=key is not None)


def sales(before: str | None = None) -> Request[Sales]:
    return Request(
        method="GET", path=f"/v1/sales{query_of(before=before)}", answer=Sales, for_anybody=True, repeatable=True
    )


def sale(sale_id: str) -> Request[Sale]:
    return Request(method="GET", path=_sale(sale_id), answer=Sale, for_anybody=True, repeatable=True)


def change_sale(sale_id: str, reason: str | None = None, /, **changes: object) -> Request[Sale]:
    return Request(method="PATCH", path=_sale(sale_id), answer=Sale, body=changes, reason=reason)


def act_on_sale(sale_id: str, verb: str, reason: str | None = None) -> Request[Sale]:
    """`pause`, `resume` or `close`."""
    return Request(method="POST", path=f"{_sale(sale_id)}/{verb}", answer=Sale, reason=reason)


def rounds(sale_id: str, *, before: str | None = None, round_: str | None = None) -> Request[Rounds]:
    query = query_of(before=before, round=round_)
    return Request(method="GET", path=f"{_sale(sale_id)}/rounds{query}", answer=Rounds, repeatable=True)


def custody(sale_id: str, round_: str | None = None) -> Request[Custody]:
    query = query_of(round=round_)
    return Request(method="GET", path=f"{_sale(sale_id)}/custody{query}", answer=Custody, repeatable=True)


def add_units(sale_id: str, units: int, item_id: str | None = None) -> Request[Sale]:
    if item_id is None:
        return change_sale(sale_id, add_units=units)
    return change_sale(sale_id, items=[{"item_id": item_id, "add_units": units}])


def claim(
    sale_id: str,
    quantity: int,
    key: str,
    *,
    wait_s: int = 0,
    metadata: Mapping[str, Any] | None = None,
    item_id: str | None = None,
    pass_: str | None = None,
) -> Request[Claimed]:
    given = {name: value for name, value in (("metadata", metadata), ("item_id", item_id)) if value is not None}
    return Request(
        method="POST",
        path=f"{_sale(sale_id)}/orders",
        answer=Claimed,
        body={"quantity": quantity, **given},
        key=key,
        prefer=f"wait={wait_s}" if wait_s else None,
        pass_=pass_,
        repeatable=True,
        wait_s=wait_s,
    )


def ask_for_pass(sale_id: str, answer: Mapping[str, Any]) -> Request[PassAnswer]:
    """`answer`: the answer to the challenge; if empty, asks for one."""
    path = f"{_sale(sale_id)}/pass"
    return Request(method="POST", path=path, answer=PassAnswer, body=answer, repeatable=True)


def join(
    sale_id: str,
    quantity: int,
    *,
    metadata: Mapping[str, Any] | None = None,
    item_id: str | None = None,
    pass_: str | None = None,
) -> Request[Entry]:
    given = {name: value for name, value in (("metadata", metadata), ("item_id", item_id)) if value is not None}
    return Request(
        method="POST",
        path=f"{_sale(sale_id)}/entries",
        answer=Entry,
        body={"quantity": quantity, **given},
        pass_=pass_,
        repeatable=True,
    )


def own_entries(sale_id: str, round_: str | None = None) -> Request[OwnEntries]:
    path = f"{_sale(sale_id)}/entries{query_of(round=round_)}"
    return Request(method="GET", path=path, answer=OwnEntries, repeatable=True)


def leave(entry_id: str) -> Request[Entry]:
    return Request(method="DELETE", path=f"/v1/entries/{quote(entry_id, safe='')}", answer=Entry, repeatable=True)


def order(order_id: str, *, wait_s: float = 0.0, seen: OrderState | None = None) -> Request[Order]:
    query = query_of(wait=f"{wait_s:g}", seen=seen) if wait_s else ""
    return Request(method="GET", path=f"{_order(order_id)}{query}", answer=Order, repeatable=True, wait_s=wait_s)


def orders(*, cursor: str | None = None, limit: int | None = None) -> Request[Orders]:
    query = query_of(cursor=cursor, limit=limit)
    return Request(method="GET", path=f"/v1/orders{query}", answer=Orders, repeatable=True)


def pay(order_id: str) -> Request[OrderToPay]:
    return Request(method="POST", path=f"{_order(order_id)}/pay", answer=OrderToPay, repeatable=True)


def cancel(order_id: str) -> Request[Order]:
    return Request(method="POST", path=f"{_order(order_id)}/cancel", answer=Order, repeatable=True)


def cancel_order(order_id: str, *, reason: str, key: str) -> Request[ExportedOrder]:
    return _admin_order(order_id, "cancel", key, {"reason": reason})


def refund_order(
    order_id: str, *, reason: str, return_unit: bool, amount_cents: int | None, key: str
) -> Request[ExportedOrder]:
    body = {"reason": reason, "return_unit": return_unit}
    return _admin_order(
        order_id, "refund", key, body if amount_cents is None else body | {"amount_cents": amount_cents}
    )


def _admin_order(order_id: str, verb: str, key: str, body: Mapping[str, Any]) -> Request[ExportedOrder]:
    path = f"/v1/admin/orders/{quote(order_id, safe='')}/{verb}"
    return Request(method="POST", path=path, answer=ExportedOrder, body=body, key=key, repeatable=True)


class OrderFilters(TypedDict, total=False):
    """Which orders a client asks for. Filters that are left out or None do not count. See docs/orders.md."""

    sale_id: str | None
    round_: str | None
    item_id: str | None
    state: OrderState | None
    buyer: str | None
    since: datetime | None
    until: datetime | None
    codes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderQuery:
    """Which orders; None: all."""

    sale_id: str | None = None
    round_: str | None = None
    item_id: str | None = None
    state: OrderState | None = None
    buyer: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    codes: bool = False  # with their voucher codes, which count as shown to their buyers from then on

    def written(self, **more: object) -> str:
        return query_of(
            sale_id=self.sale_id,
            round=self.round_,
            item_id=self.item_id,
            state=self.state,
            buyer=self.buyer,
            since=None if self.since is None else self.since.isoformat(),
            until=None if self.until is None else self.until.isoformat(),
            codes="true" if self.codes else None,
            **more,
        )


def find_orders(wanted: OrderQuery, *, after: str | None = None, limit: int | None = None) -> Request[Any]:
    query = wanted.written(after=after, limit=limit)
    return Request(method="GET", path=f"/v1/admin/orders{query}", answer=object, repeatable=True)


def export_orders(wanted: OrderQuery, kind: str, *, after: str | None, limit: int) -> Request[Any]:
    """Asks for a portion, as `csv` or `jsonl`."""
    query = wanted.written(after=after, limit=limit)
    return Request(method="GET", path=f"/v1/admin/orders.{kind}{query}", answer=object, repeatable=True)


def upload_vouchers(sale_id: str, content: bytes, *, item_id: str | None = None) -> Request[VouchersAdded]:
    return Request(
        method="POST",
        path=f"{_vouchers(sale_id)}{query_of(item_id=item_id)}",
        answer=VouchersAdded,
        content=("text/csv", content),
        wait_s=UPLOAD_S_MAX,
    )


def count_vouchers(sale_id: str) -> Request[VoucherCounts]:
    return Request(method="GET", path=_vouchers(sale_id), answer=VoucherCounts, repeatable=True)


def voucher(code: str) -> Request[Voucher]:
    return Request(method="GET", path=f"/v1/admin/vouchers/{quote(code, safe='')}", answer=Voucher, repeatable=True)


def redeem_voucher(code: str) -> Request[Voucher]:
    return Request(method="POST", path=f"/v1/admin/vouchers/{quote(code, safe='')}/redeem", answer=Voucher)


def upload_image(content: bytes) -> Request[UploadedImage]:
    return Request(
        method="POST",
        path="/v1/admin/images",
        answer=UploadedImage,
        content=("application/octet-stream", content),
        repeatable=True,
        wait_s=UPLOAD_S_MAX,
    )


def events(
    *,
    after: int | None = None,
    types: Sequence[str] | None = None,
    sale_id: str | None = None,
    limit: int | None = None,
    wait_s: float = 0.0,
) -> Request[Events]:
    query = query_of(
        after=after,
        types=None if types is None else ",".join(types),
        sale_id=sale_id,
        limit=limit,
        wait=f"{wait_s:g}" if wait_s else None,
    )
    return Request(method="GET", path=f"/v1/admin/events{query}", answer=Events, repeatable=True, wait_s=wait_s)


def create_webhook(
    url: str,
    *,
    types: Sequence[str] | None = None,
    sale_id: str | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> Request[Webhook]:
    body = {"url": url, "types": types, "sale_id": sale_id, "description": description, "enabled": enabled}
    given = {name: value for name, value in body.items() if value is not None}
    return Request(method="POST", path="/v1/admin/webhooks", answer=Webhook, body=given)


def webhooks() -> Request[Webhooks]:
    return Request(method="GET", path="/v1/admin/webhooks", answer=Webhooks, repeatable=True)


def webhook(webhook_id: str) -> Request[Webhook]:
    return Request(method="GET", path=_webhook(webhook_id), answer=Webhook, repeatable=True)


def change_webhook(webhook_id: str, **changes: object) -> Request[Webhook]:
    return Request(method="PATCH", path=_webhook(webhook_id), answer=Webhook, body=changes, repeatable=True)


def delete_webhook(webhook_id: str) -> Request[None]:
    return Request(method="DELETE", path=_webhook(webhook_id), answer=type(None))


def rotate_webhook(webhook_id: str, overlap_hours: int | None = None) -> Request[Webhook]:
    body = {} if overlap_hours is None else {"overlap_hours": overlap_hours}
    return Request(method="POST", path=f"{_webhook(webhook_id)}/rotate", answer=Webhook, body=body)


def try_webhook(webhook_id: str, *, wait_s: float = 0.0) -> Request[WebhookDelivery]:
    return _delivered(f"{_webhook(webhook_id)}/test", wait_s)


def webhook_deliveries(
    webhook_id: str, *, state: str | None = None, limit: int | None = None, after: str | None = None
) -> Request[WebhookDeliveries]:
    query = query_of(state=state, limit=limit, after=after)
    path = f"{_webhook(webhook_id)}/deliveries{query}"
    return Request(method="GET", path=path, answer=WebhookDeliveries, repeatable=True)


def redeliver_webhook(webhook_id: str, delivery_id: str, *, wait_s: float = 0.0) -> Request[WebhookDelivery]:
    return _delivered(f"{_webhook(webhook_id)}/deliveries/{quote(delivery_id, safe='')}/redeliver", wait_s)


def _delivered(path: str, wait_s: float) -> Request[WebhookDelivery]:
    query = query_of(wait=f"{wait_s:g}" if wait_s else None)
    return Request(method="POST", path=f"{path}{query}", answer=WebhookDelivery, wait_s=wait_s)


def audit(*, full: bool = False) -> Request[Audit]:
    query = query_of(full="true" if full else None)
    return Request(method="GET", path=f"/v1/admin/audit{query}", answer=Audit, repeatable=True)


def dead_letters() -> Request[DeadLetters]:
    return Request(method="GET", path="/v1/admin/dead", answer=DeadLetters, repeatable=True)


def dead_letter(letter_id: str) -> Request[DeadLetter]:
    return Request(method="GET", path=_letter(letter_id), answer=DeadLetter, repeatable=True)


def act_on_dead_letter(letter_id: str, verb: str) -> Request[DeadLetter]:
    """`replay` or `discard`."""
    return Request(method="POST", path=f"{_letter(letter_id)}/{verb}", answer=DeadLetter)


def export_buyer(buyer: str) -> Request[dict[str, Any]]:
    """Names the buyer in the body, because addresses are logged."""
    body = {"buyer": buyer}
    return Request(method="POST", path="/v1/admin/buyers/export", answer=dict[str, Any], body=body, repeatable=True)


def erase_buyer(buyer: str) -> Request[ErasedBuyer]:
    return Request(method="POST", path="/v1/admin/buyers/erase", answer=ErasedBuyer, body={"buyer": buyer})


def _sale(sale_id: str) -> str:
    return f"/v1/sales/{quote(sale_id, safe='')}"


def _vouchers(sale_id: str) -> str:
    return f"/v1/admin/sales/{quote(sale_id, safe='')}/vouchers"


def _order(order_id: str) -> str:
    return f"/v1/orders/{quote(order_id, safe='')}"


def _webhook(webhook_id: str) -> str:
    return f"/v1/admin/webhooks/{quote(webhook_id, safe='')}"


def _letter(letter_id: str) -> str:
    return f"/v1/admin/dead/{quote(letter_id, safe='')}"


def query_of(**parameters: object) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given, quote_via=quote)}" if given else ""
