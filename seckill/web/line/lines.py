"""The line of a sale as a whole: how far it has come, its draw, and operators' changes."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.draw import ALGORITHM
from seckill.domain.line import EntryState, LineEntry, RoundLine
from seckill.domain.receipt import ALGORITHM as ALGORITHM_OF_RECEIPTS
from seckill.domain.sale import Sale
from seckill.engine.line.figures import LineProgress
from seckill.errors import NotPossible
from seckill.ports.line import Standing
from seckill.web.context import Context, context
from seckill.web.line.line_entries import view as entry_view
from seckill.web.line.line_schemas import (
    BeaconOrigin,
    Draw,
    DrawEntries,
    LineKey,
    LineKeys,
    LineOfOperator,
    LinePatch,
    LineShown,
)
from seckill.web.problems import HttpProblem, invalid
from seckill.web.requests.parameters import only, page_size, row_id, sale_asked_for
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import cacheable, json_response
from seckill.web.schemas import rfc3339_or_none

ENTRIES_MAX = 1_000
DRAW_ENTRIES_MAX = 9_999
DRAW_ENTRIES_DEFAULT = 5_000
# A draw that is made never changes.
DRAWN_MAX_AGE_S = 60
MAX_AGE_S = 1

_patch = msgspec.json.Decoder(LinePatch)


async def show_line(request: Request) -> Response:
    ctx = context(request)
    sale = await sale_asked_for(ctx, request)
    return cacheable(request, _shown(sale, await _progress(ctx, sale)), MAX_AGE_S)


async def show_draw(request: Request) -> Response:
    ctx = context(request)
    sale = await sale_asked_for(ctx, request)
    line = (await _progress(ctx, sale)).line
    if line.commitment is None:
        raise _no_draw()
    shown = draw_shown(ctx, sale, line)
    return cacheable(request, shown, MAX_AGE_S if line.drawn_ms is None else DRAWN_MAX_AGE_S)


def draw_shown(ctx: Context, sale: Sale, line: RoundLine) -> Draw:
    assert line.commitment is not None, "nothing is drawn"
    return Draw(
        sale_id=ctx.sale_cache.public_id(sale),
        round=str(sale.round.id),
        commitment=line.commitment,
        algorithm=ALGORITHM,
        entries=None if line.closed_ms is None else line.entries,
        list_hash=line.list_hash,
        seed=line.revealed_seed,
        beacon=line.beacon,
        wants_beacon=line.wants_beacon,
        closed_at=rfc3339_or_none(line.closed_ms),
        drawn_at=rfc3339_or_none(line.drawn_ms),
        receipt_key=ctx.line.receipts.public_key.hex(),
        listed_at=rfc3339_or_none(line.listed_ms),
        beacon_source=None
        if line.beacon_from is None
        else msgspec.convert(line.beacon_from, BeaconOrigin, from_attributes=True),
        beacon_round=line.beacon_round,
        beacon_missed_at=rfc3339_or_none(line.beacon_missed_ms),
    )


async def show_keys(request: Request) -> Response:
    key = context(request).line.receipts.public_key
    shown = LineKey(kty="OKP", crv=ALGORITHM_OF_RECEIPTS, x=_base64url(key), kid=key[:8].hex(), use="sig")
    return cacheable(request, LineKeys([shown]), DRAWN_MAX_AGE_S)


def _base64url(key: bytes) -> str:
    return urlsafe_b64encode(key).rstrip(b"=").decode()


async def list_draw(request: Request) -> Response:
    """Lists the draw by place or, before there are places, by entry."""
    ctx = context(request)
    only(request, ("after", "limit", "round"))
    sale = await sale_asked_for(ctx, request)
    line = (await _progress(ctx, sale)).line
    after, count = _after(request), page_size(request, DRAW_ENTRIES_MAX, DRAW_ENTRIES_DEFAULT)
    if line.commitment is None:
        raise _no_draw()
    if line.list_hash is None:
        raise HttpProblem(409, "not_closed", "The list is not closed yet.")
    if line.drawn_ms is None:
        numbers = await ctx.line.figures.unplaced(line.round_id, after, count)
        if numbers is None:
            raise HttpProblem(409, "being_drawn", "Places are given now: in a moment the list is here in their order.")
        ids = ctx.entry_ids.encode_all(numbers) if numbers else []
        following = numbers[-1] if len(numbers) == count else None
    else:
        up_to = min(after + count, line.entries)
        ids = await ctx.line.drawn.of(line.round_id, after, up_to)
        following = up_to if up_to < line.entries else None
    shown = DrawEntries(ids, line.drawn_ms is not None, following)
    return cacheable(request, shown, MAX_AGE_S if line.drawn_ms is None else DRAWN_MAX_AGE_S)


async def show_line_to_operator(request: Request) -> Response:
    ctx = context(request)
    only(request, ("after", "limit", "state", "buyer", "round"))
    sale = await sale_asked_for(ctx, request, hidden_too=True)
    after, count, state = _after(request), page_size(request, ENTRIES_MAX), _state(request)
    progress = await _now(ctx, sale)
    buyer = request.query_params.get("buyer")
    if buyer is not None:
        found = await ctx.line.figures.entry_of(sale.round.id, buyer)
        return json_response(await _to_operator(ctx, sale, progress, [] if found is None else [found], None))
    if not progress.line.decided:
        undrawn = await ctx.line.figures.undrawn(sale.round.id, after, count, state)
        return json_response(await _to_operator(ctx, sale, progress, undrawn, _last(undrawn, count, lambda it: it.id)))
    entries = await ctx.line.figures.entries(sale.round.id, after, count, state)
    return json_response(await _to_operator(ctx, sale, progress, entries, _last(entries, count, lambda it: it.place)))


async def change_line(request: Request) -> Response:
    ctx = context(request)
    patch = decode(await read_body(request.receive), _patch)
    sale = await sale_asked_for(ctx, request, hidden_too=True)
    pace = None if patch.serve_per_s is UNSET else patch.serve_per_s or 0
    try:
        line = await ctx.line.figures.change(sale.round, paused=patch.paused, pace=pace, beacon=patch.beacon)
    except NotPossible as error:
        raise HttpProblem(409, "not_possible", str(error)) from None
    if line is None:
        raise _no_line()
    return json_response(await _to_operator(ctx, sale, await _now(ctx, sale), [], None))


async def _now(ctx: Context, sale: Sale) -> LineProgress:
    progress = await ctx.line.figures.now(sale.round)
    if progress is None:
        raise _no_line()
    return progress


def _last(entries: Sequence[LineEntry], count: int, key: Callable[[LineEntry], int | None]) -> int | None:
    """Returns None if there are no more."""
    return key(entries[-1]) if len(entries) == count else None


async def _to_operator(
    ctx: Context, sale: Sale, progress: LineProgress, entries: Sequence[LineEntry], following: int | None
) -> LineOfOperator:
    line = progress.line
    shown = [
        await entry_view(ctx, Standing(entry=entry, line=line, ahead=None), sale, to_operator=True) for entry in entries
    ]
    return LineOfOperator(
        line=_shown(sale, progress),
        serve_per_s=line.serve_per_s,
        beacon=line.beacon,
        wants_beacon=line.wants_beacon,
        fetches_beacon=line.beacon_from is not None,
        closed_at=rfc3339_or_none(line.closed_ms),
        drawn_at=rfc3339_or_none(line.drawn_ms),
        entries=shown,
        next=following,
    )


def _shown(sale: Sale, progress: LineProgress) -> LineShown:
    line = progress.line
    return LineShown(
        order=line.order,
        waiting=line.waiting,
        served=line.served,
        served_up_to=progress.served_up_to if line.decided else 0,
        places=_places(line),
        units=sale.round.total,
        units_left=progress.units_left,
        unpaid=progress.unpaid,
        drawn=line.decided,
        paused=line.paused,
    )


def _places(line: RoundLine) -> int:
    return line.places if line.decided else 0


async def _progress(ctx: Context, sale: Sale) -> LineProgress:
    progress = await ctx.line.figures.of(sale.round)
    if progress is None:
        raise _no_line()
    return progress


def _no_line() -> HttpProblem:
    return HttpProblem(404, "no_line", "This sale has no line: whoever presses first gets a unit.")


def _no_draw() -> HttpProblem:
    return HttpProblem(404, "no_draw", "Nothing is drawn in this sale.")


def _after(request: Request) -> int:
    after = row_id(request.query_params.get("after", "0"))
    if after is None:
        raise invalid("after", "is not one that this list gave")
    return after


def _state(request: Request) -> EntryState | None:
    text = request.query_params.get("state")
    if text is None:
        return None
    shown = {state.value: state for state in EntryState if state.shown is state}
    if text not in shown:
        raise invalid("state", f"must be one of {', '.join(shown)}")
    return shown[text]
