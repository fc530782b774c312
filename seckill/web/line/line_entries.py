"""Entries in the line of a sale: joining, leaving, looking, for their buyers and for operators."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.door import PassKind
from seckill.domain.item import NO_ITEM
from seckill.domain.line import EntryState
from seckill.domain.line_estimate import chance
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundStatus, Sale
from seckill.engine.line.figures import LineProgress
from seckill.engine.line.joining import Joined, NotSoldOut
from seckill.errors import GateError, LedgerError
from seckill.ports.door import RiskDecision
from seckill.ports.line import Joining, NoEntry, Standing
from seckill.web.buyers.token_person import person_of
from seckill.web.claims.claim import BEGUN
from seckill.web.connections.waiting_seats import gone
from seckill.web.context import Context, context
from seckill.web.door.claim_door import HEADER as PASS
from seckill.web.door.passes import applicant_of, sale_meant
from seckill.web.line.line_schemas import Entry, EntryRemoval, NewEntry, OwnEntries
from seckill.web.orders.order_actions import reason_given
from seckill.web.problems import HttpProblem, address_limited, not_yours
from seckill.web.requests.metadata import canonical_metadata
from seckill.web.requests.parameters import only, sale_asked_for, wait_s
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import NO_STORE, json_response
from seckill.web.sales.items import item_meant
from seckill.web.schemas import rfc3339

NEW_ENTRY = msgspec.json.Decoder(NewEntry)
_removal = msgspec.json.Decoder(EntryRemoval)


async def join_line(request: Request) -> Response:
    ctx = context(request)
    if BEGUN in request.scope:
        return await _joined(ctx, *await request.scope[BEGUN])
    buyer = ctx.require_token(request)
    sale = await sale_meant(ctx, request.path_params["sale_id"])
    ctx.door.refuse_blocked(buyer.user)
    sent_pass = request.headers.get(PASS.decode())
    ctx.door.may_join(sale, buyer, None if sent_pass is None else sent_pass.encode("latin-1"))
    asked = decode(await read_body(request.receive), NEW_ENTRY)
    joining = Joining(
        user=buyer.user,
        quantity=asked.quantity,
        item=item_meant(ctx.item_ids, sale, asked.item_id),
        metadata="" if asked.metadata is None else canonical_metadata(asked.metadata),
        groups=ctx.door.groups_of(sale, buyer),
        person="" if sale.limit_by is None else person_of(buyer, sale.limit_by),
    )
    if wait := ctx.line.rate.wait_s(ctx.counted_address(request), time.monotonic()):
        raise address_limited(wait)
    _check_round(ctx, sale, joining)
    # Where a pass is needed, the hook was asked before it was issued.
    if sale.door.pass_kind is PassKind.NONE:
        judgement = await ctx.passes.judge(applicant_of(ctx, request, sale, buyer.user))
        if judgement is RiskDecision.DENY:
            raise HttpProblem(403, "entry_denied", "There is no place in this line for you.")
    try:
        joined = await ctx.line.desk.join(sale, joining)
    except NotSoldOut:
        raise HttpProblem(409, "not_sold_out", "There are units left: just buy.") from None
    except (GateError, LedgerError):
        raise _not_now() from None
    return await _joined(ctx, sale, joined)


async def _joined(ctx: Context, sale: Sale, joined: Joined) -> Response:
    if isinstance(joined, LedgerError):
        raise _not_now() from joined
    if not isinstance(joined, Standing):
        raise _refusal(joined)
    entry = await view(ctx, joined, sale)
    headers = {**NO_STORE, "Location": f"/v1/entries/{entry.entry_id}"}
    return json_response(entry, 201 if joined.new else 200, headers=headers)


def _not_now() -> HttpProblem:
    return HttpProblem.of(Outcome.NOT_READY, "The line cannot be joined now; please try again.")


def _check_round(ctx: Context, sale: Sale, joining: Joining) -> None:
    if not sale.door.line.has_line:
        raise _refusal(NoEntry.NO_LINE)
    if sale.round.status is RoundStatus.CLOSED or ctx.sale_cache.now_ms() >= sale.round.ends_ms:
        raise _refusal(NoEntry.OVER)
    limit = sale.round.limit_per_buyer
    if joining.quantity > limit:
        detail = f"The limit of this sale is {limit} per buyer."
        raise HttpProblem.of(Outcome.LIMIT_REACHED, detail, order_ids=[])


async def list_own(request: Request) -> Response:
    """Shows the buyer's entries in the round that one would join now, or in the one asked for."""
    ctx = context(request)
    user = ctx.require_buyer(request)
    only(request, ("round",))
    if "round" in request.query_params:
        sale = await sale_asked_for(ctx, request)
    else:
        sale = await sale_meant(ctx, request.path_params["sale_id"])
    found = await ctx.line.desk.find_own(sale.round.id, user) if sale.door.line.has_line else None
    return json_response(OwnEntries([] if found is None else [await view(ctx, found, sale)]))


async def show_entry(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    seconds = wait_s(request)
    found = await _own(ctx, request, user)
    if seconds > 0 and found.entry.state.shown is EntryState.WAITING:
        with ctx.seats.taken_by(user, ctx.counted_address(request)):
            await _wait(ctx, found, seconds, gone(request.receive))
        found = await _own(ctx, request, user)
    return json_response(await view(ctx, found))


async def _wait(ctx: Context, found: Standing, seconds: float, left: Callable[[], Awaitable[None]]) -> None:
    async def leave() -> None:
        await left()

    async with ctx.line.watches.watch(found.entry) as changed:
        tasks = {asyncio.create_task(leave()), asyncio.create_task(changed.wait())}
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()


async def leave_line(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    left = await ctx.line.desk.leave(entry_number(ctx, request), user)
    if not isinstance(left, Standing):
        raise _refusal(left)
    return json_response(await view(ctx, left))


async def remove_entry(request: Request) -> Response:
    ctx = context(request)
    reason = reason_given(decode(await read_body(request.receive), _removal).reason)
    removed = await ctx.line.desk.remove(entry_number(ctx, request), reason)
    if not isinstance(removed, Standing):
        raise _refusal(removed)
    return json_response(await view(ctx, removed, to_operator=True))


async def _own(ctx: Context, request: Request, user: str) -> Standing:
    found = await ctx.line.desk.find(entry_number(ctx, request), user)
    if found is None:
        raise not_yours("entry")
    return found


def entry_number(ctx: Context, request: Request) -> int:
    number = ctx.entry_ids.decode(request.path_params["entry_id"])
    if number is None:
        raise not_yours("entry")
    return number


def _refusal(why: NoEntry) -> HttpProblem:
    match why:
        case NoEntry.NO_LINE:
            return HttpProblem(409, "no_line", "This sale has no line: whoever presses first gets a unit.")
        case NoEntry.OVER:
            return HttpProblem.of(Outcome.ENDED)
        case NoEntry.SERVED:
            return HttpProblem(409, "already_served", "It was this entry's turn: cancel the order instead.")
        case NoEntry.UNKNOWN:
            return not_yours("entry")


async def view(ctx: Context, standing: Standing, sale: Sale | None = None, *, to_operator: bool = False) -> Entry:
    """`sale`: the sale with the entry's round, if it is at hand."""
    entry, line = standing.entry, standing.line
    if sale is None:
        await ctx.sale_cache.know([line.sale_id])
        sale = ctx.sale_cache.sale_of_round(entry.round_id) or ctx.sale_cache.sale(line.sale_id)
    wants_progress = sale is not None and standing.ahead is not None
    progress = await ctx.line.figures.of(sale.round) if sale is not None and wants_progress else None
    entry_id = ctx.entry_ids.encode(entry.id)
    [receipt] = ctx.line.receipts.of([entry], [entry_id])
    return shown(ctx, standing, sale, entry_id, receipt, progress, to_operator=to_operator)


def shown(
    ctx: Context,
    standing: Standing,
    sale: Sale | None,
    entry_id: str,
    receipt: str,
    progress: LineProgress | None,
    *,
    to_operator: bool = False,
) -> Entry:
    """`progress`: the line's progress, which says how many are ahead of the entry."""
    entry, line = standing.entry, standing.line
    return Entry(
        entry_id=entry_id,
        sale_id=ctx.sale_ids.encode(line.sale_id) if sale is None else ctx.sale_cache.public_id(sale),
        round=str(entry.round_id),
        state=entry.state.shown,
        quantity=entry.quantity,
        place=entry.place if line.decided or (entry.place or 0) > line.entries else None,
        ahead=standing.ahead if line.decided else None,
        of=line.waiting,
        units=0 if sale is None else _units(sale, entry.item),
        chance=None if progress is None or standing.ahead is None else _chance(progress, standing, standing.ahead),
        joined_at=rfc3339(entry.joined_ms),
        receipt=receipt,
        order_id=None if entry.order_number is None else ctx.order_ids.encode(int(entry.order_number)),
        reason=entry.reason,
        item_id=ctx.item_ids.of(entry.item) if entry.item != NO_ITEM else msgspec.UNSET,
        buyer=entry.user if to_operator else msgspec.UNSET,
        metadata=msgspec.json.decode(entry.metadata) if entry.metadata else msgspec.UNSET,
    )


def _chance(progress: LineProgress, standing: Standing, ahead: int) -> float | None:
    if progress.so_far is None or not progress.line.decided:
        return None
    # The progress is up to a second older. Whoever was served meanwhile is not ahead any more, and their unit not left.
    found = chance(ahead, progress.so_far.after_offering(max(0, standing.line.served - progress.line.served)))
    return None if found is None else round(found, 3)


def _units(sale: Sale, item: int) -> int:
    return dict(sale.round.items).get(item, sale.round.total)
