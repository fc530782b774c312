"""Dead letters: orders that could not be written, for operators to look at."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.dead_letter import Letter
from seckill.errors import NotPossible
from seckill.web.context import Context, context
from seckill.web.problems import HttpProblem, no_such
from seckill.web.requests.parameters import id_in_path
from seckill.web.responses import json_response
from seckill.web.schemas import DeadLetter, DeadLetters, rfc3339

LIST_MAX = 200


def view(ctx: Context, letter: Letter) -> DeadLetter:
    return DeadLetter(
        id=str(letter.id),
        order_id=None if letter.number is None else ctx.order_ids.encode(int(letter.number)),
        state=letter.state,
        reason=letter.reason,
        attempts=letter.attempts,
        created_at=rfc3339(letter.created_ms),
        history=[{"at": rfc3339(int(str(tried["at_ms"]))), "reason": str(tried["reason"])} for tried in letter.history],
        payload=letter.payload,
    )


async def list_dead(request: Request) -> Response:
    ctx = context(request)
    letters = await ctx.failures.dead(LIST_MAX)
    return json_response(DeadLetters([view(ctx, letter) for letter in letters]))


async def show_dead(request: Request) -> Response:
    ctx = context(request)
    return json_response(view(ctx, await _find(request)))


async def replay_dead(request: Request) -> Response:
    return await _act(request, context(request).failures.replay)


async def discard_dead(request: Request) -> Response:
    return await _act(request, context(request).failures.discard)


async def _act(request: Request, action: Callable[[int], Awaitable[Letter]]) -> Response:
    ctx = context(request)
    letter = await _find(request)
    try:
        await action(letter.id)
    except NotPossible as error:
        raise HttpProblem(409, "not_possible", str(error)) from None
    return json_response(view(ctx, await _find(request)))


async def _find(request: Request) -> Letter:
    letter_id = id_in_path(request, "letter_id", "dead letter")
    letter = await context(request).failures.find(letter_id)
    if letter is None:
        raise no_such("dead letter", str(letter_id))
    return letter
