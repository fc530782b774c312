"""Exports or erases one buyer's data. The buyer is named in the body, because addresses are logged."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.buyer_id import BadBuyerId, buyer_id
from seckill.engine.buyer_data import BuyerFile as HeldFile
from seckill.ports.buyer_data import DataRow, Erasure, Hindrance, HindranceKind
from seckill.web.buyers.buyer_data_schemas import BuyerFile, ErasedBuyer, OneBuyer
from seckill.web.context import Context, context
from seckill.web.problems import HttpProblem, invalid
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339

_one_buyer = msgspec.json.Decoder(OneBuyer)

_SAYS = {
    HindranceKind.ROUND: "the gate still has records of a round of theirs, until a day after its end",
    HindranceKind.QUEUED: "an order of theirs is still queued",
    HindranceKind.SET_ASIDE: "an order of theirs is set aside: replay or discard it first",
    HindranceKind.LINE: "they are waiting in a line: remove their entry first, or wait until the round is over",
    HindranceKind.MONEY: "money of theirs is on its way: a payment that is not decided, or a refund that is not made",
}
# Columns that are internal or say nothing about the buyer.
_LEFT_OUT = {"user_id", "order_id", "payment_id", "round_id", "epoch", "active_slot", "lease", "entry_id", "upload_id"}
_JSON = {"metadata", "history"}


async def export_buyer(request: Request) -> Response:
    ctx = context(request)
    user = await _user(request)
    return json_response(_document(ctx, user, await ctx.buyer_data.export(user)))


async def erase_buyer(request: Request) -> Response:
    ctx = context(request)
    done = await ctx.buyer_data.erase(await _user(request))
    if isinstance(done, Erasure):
        return json_response(
            ErasedBuyer(
                orders=done.orders, entries=done.entries, letters=done.letters, events=done.events, lists=done.lists
            )
        )
    kinds = list(dict.fromkeys(each.kind for each in done))
    sentence = f"Nothing was erased, because {'; '.join(_SAYS[kind] for kind in kinds)}. Ask again afterwards."
    raise HttpProblem(409, "still_moving", sentence, because=[_because(ctx, each) for each in done])


async def _user(request: Request) -> str:
    try:
        return buyer_id(decode(await read_body(request.receive), _one_buyer).buyer)
    except BadBuyerId as error:
        raise invalid("buyer", str(error)) from error


def _because(ctx: Context, hindrance: Hindrance) -> dict[str, str | None]:
    return {
        "kind": hindrance.kind,
        "sale_id": None if hindrance.sale_id is None else ctx.sale_ids.encode(hindrance.sale_id),
        "order_id": None if hindrance.order is None else ctx.order_ids.encode(hindrance.order),
    }


def _document(ctx: Context, user: str, held: HeldFile) -> BuyerFile:
    rows = held.rows
    payments = {row["id"]: row["order_id"] for row in rows.payments}
    refunds = [{**row, "order_id": payments[row["payment_id"]]} for row in rows.refunds]
    written = {row["id"] for row in rows.orders}
    of_order = {
        "history": rows.order_events,
        "payments": rows.payments,
        "refunds": refunds,
        "operators": rows.order_actions,
        "vouchers": rows.vouchers,
    }
    return BuyerFile(
        buyer=user,
        made_at=rfc3339(int(time.time() * 1000)),
        orders=[
            _shown(ctx, row)
            | {"order_id": ctx.order_ids.encode(row["id"]), "round": str(row["round_id"])}
            | {name: _of(ctx, found, row["id"]) for name, found in of_order.items()}
            for row in rows.orders
        ],
        queued=[
            {"order_id": ctx.order_ids.encode(int(one.number)), "sale_id": ctx.sale_ids.encode(round_.sale_id)}
            | {"round": str(round_.id), "quantity": one.quantity}
            for round_, one in held.in_gate
            if int(one.number) not in written
        ],
        entries=[_shown(ctx, row) | {"round": str(row["round_id"])} for row in rows.entries],
        set_aside=[_shown(ctx, row) for row in rows.letters],
        lists=[ctx.sale_ids.encode(sale_id) for sale_id in rows.lists],
    )


def _of(ctx: Context, rows: Sequence[DataRow], order: int) -> list[dict[str, Any]]:
    return [_shown(ctx, row) for row in rows if row["order_id"] == order]


def _shown(ctx: Context, row: DataRow) -> dict[str, Any]:
    """Uses the names of the API, with times instead of milliseconds and public ids instead of ours."""
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if name in _LEFT_OUT or name == "id" or value is None:
            continue
        if name.endswith("_ms"):
            shown[f"{name.removesuffix('_ms')}_at"] = rfc3339(value)
        elif name == "sale_id":
            shown[name] = ctx.sale_ids.encode(value)
        elif name == "item_id":
            shown[name] = ctx.item_ids.of(value) if value else None
        else:
            shown[name] = msgspec.json.decode(value) if name in _JSON else value
    return shown
