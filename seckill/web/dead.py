"""Dead letters: orders that could not be written, for people to look at."""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.errors import NotPossible
from seckill.letters import Letter, LetterState
from seckill.web.context import Context, context
from seckill.web.problems import Problem, not_found
from seckill.web.schemas import DeadLetter, DeadLetters, rfc3339

LIST_MAX = 200


def view(ctx: Context, letter: Letter) -> DeadLetter:
    return DeadLetter(
        id=str(letter.id),
        order_id=None if letter.number is None else ctx.engine.order_ids.encode(int(letter.number)),
        state=letter.state,
        reason=letter.reason,
        attempts=letter.attempts,
        created_at=rfc3339(letter.created_ms),
        history=[{"at": rfc3339(int(str(tried["at_ms"]))), "reason": str(tried["reason"])} for tried in letter.history],
        payload=letter.payload,
    )


async def list_dead(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    letters = await ctx.engine.ledger.letters(LetterState.DEAD, LIST_MAX)
    return _json(DeadLetters([view(ctx, letter) for letter in letters]))


async def show_dead(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    return _json(view(ctx, await _find(request)))


async def replay_dead(request: Request) -> Response:
    return await _act(request, context(request).failures.replay)


async def discard_dead(request: Request) -> Response:
    return await _act(request, context(request).failures.discard)


async def _act(request: Request, action: Callable[[int], Awaitable[Letter]]) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    letter = await _find(request)
    try:
        await action(letter.id)
    except NotPossible as error:
        raise Problem(409, "not_possible", str(error)) from None
    return _json(view(ctx, await _find(request)))


async def _find(request: Request) -> Letter:
    text = request.path_params["letter_id"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise not_found()
    letter = await context(request).engine.ledger.letter(int(text))
    if letter is None:
        raise not_found()
    return letter


def _json(content: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(content), 200, {"Cache-Control": "no-store"}, "application/json")
