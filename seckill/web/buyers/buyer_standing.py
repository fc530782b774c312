"""What operators do to buyers: block them, and end their tokens."""

import math
from datetime import datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.buyer_id import BadBuyerId, buyer_id
from seckill.ports.access import EVERYBODY
from seckill.ports.access import BuyerStanding as Known
from seckill.web.context import Context, context
from seckill.web.operators.access_schemas import (
    BuyerStanding,
    BuyerStandings,
    BuyerWish,
    NewBuyerTokenEnd,
    NewTokenEnd,
    TokensEnded,
)
from seckill.web.orders.order_actions import reason_given
from seckill.web.problems import invalid
from seckill.web.requests.parameters import page_size
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339, rfc3339_or_none

_wish = msgspec.json.Decoder(BuyerWish)
_end = msgspec.json.Decoder(NewTokenEnd)
_end_of_buyer = msgspec.json.Decoder(NewBuyerTokenEnd)


async def block_buyer(request: Request) -> Response:
    wish = decode(await read_body(request.receive), _wish)
    standing = await context(request).access.block(_buyer(wish.buyer), reason_given(wish.reason))
    return json_response(_view(standing))


async def unblock_buyer(request: Request) -> Response:
    wish = decode(await read_body(request.receive), _wish)
    standing = await context(request).access.unblock(_buyer(wish.buyer), reason_given(wish.reason))
    return json_response(_view(standing))


async def end_tokens_of_buyer(request: Request) -> Response:
    ctx = context(request)
    wish = decode(await read_body(request.receive), _end_of_buyer)
    before_s = _before_s(ctx, wish.before)
    return json_response(_view(await ctx.access.end_tokens(_buyer(wish.buyer), before_s, reason_given(wish.reason))))


async def end_all_tokens(request: Request) -> Response:
    ctx = context(request)
    wish = decode(await read_body(request.receive), _end)
    ended = await ctx.access.end_tokens(EVERYBODY, _before_s(ctx, wish.before), reason_given(wish.reason))
    return json_response(TokensEnded(rfc3339(1000 * (ended.tokens_before_s or 0))))


async def list_buyers(request: Request) -> Response:
    """Lists blocked buyers, or shows the buyer who is asked for."""
    ctx = context(request)
    query = request.query_params
    if "buyer" in query:
        return json_response(BuyerStandings([_view(await ctx.access.standing(_buyer(query["buyer"])))]))
    count = page_size(request)
    found = await ctx.access.blocked(query.get("after", ""), count)
    shown = [_view(each) for each in found]
    return json_response(BuyerStandings(shown, shown[-1].buyer if len(shown) == count else None))


def _buyer(text: str) -> str:
    try:
        return buyer_id(text)
    except BadBuyerId as error:
        raise invalid("buyer", str(error)) from None


def _before_s(ctx: Context, before: datetime | None) -> int:
    """A token gives its time of issue in whole seconds, so all tokens of the current second are ended, too. A buyer who
    signs in again a moment later gets a token of the next second."""
    now_s = math.ceil(ctx.sale_cache.now_ms() / 1000)
    if before is None:
        return now_s
    before_s = math.ceil(before.timestamp())
    if before_s > now_s:
        raise invalid("before", "must not be in the future: no one could sign in until then")
    return max(before_s, 0)


def _view(standing: Known) -> BuyerStanding:
    ended_s = standing.tokens_before_s
    return BuyerStanding(
        buyer=standing.user,
        blocked=standing.blocked_ms is not None,
        blocked_at=rfc3339_or_none(standing.blocked_ms),
        blocked_by=standing.blocked_by,
        reason=standing.reason,
        tokens_ended_before=None if ended_s is None else rfc3339(1000 * ended_s),
    )
