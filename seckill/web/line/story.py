"""`GET /v1/sales/{id}/story`: how a round went."""

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.outcome import Outcome
from seckill.domain.sale import Sale
from seckill.engine.rounds.story import ToldStory
from seckill.errors import GateError, LedgerError
from seckill.web.context import Context, context
from seckill.web.line.lines import draw_shown
from seckill.web.line.story_schemas import Story
from seckill.web.problems import HttpProblem
from seckill.web.requests.parameters import only, sale_asked_for
from seckill.web.responses import cacheable
from seckill.web.schemas import rfc3339, rfc3339_or_none

MAX_AGE_S = 10


async def show_story(request: Request) -> Response:
    ctx = context(request)
    only(request, ("round",))
    sale = await sale_asked_for(ctx, request)
    try:
        told = await ctx.line.stories.of(sale)
    except (GateError, LedgerError):
        raise HttpProblem.of(Outcome.NOT_READY, "How it went cannot be read now; please try again.") from None
    if told is None:
        raise HttpProblem(409, "not_over", "How it went is told when it is sold out or over.")
    return cacheable(request, _shown(ctx, sale, told), MAX_AGE_S)


def _shown(ctx: Context, sale: Sale, told: ToldStory) -> Story:
    story, round_ = told.ledger, sale.round
    return Story(
        sale_id=ctx.sale_cache.public_id(sale),
        round=str(round_.id),
        units=round_.total,
        begins_at=rfc3339(round_.begins_ms),
        first_unit_at=rfc3339_or_none(story.first_ms),
        last_unit_at=rfc3339_or_none(story.last_ms),
        gone_at=rfc3339_or_none(story.gone_ms),
        seconds_to_sell_out=None if story.gone_ms is None else max(0, story.gone_ms - round_.begins_ms) / 1000,
        orders=story.orders,
        units_given=story.units,
        returned=story.returned,
        resold=max(0, story.units - round_.total),
        may_return=told.may_return,
        refused=dict(told.refused) or None,
        curve=list(story.curve),
        draw=None if told.line is None or told.line.commitment is None else draw_shown(ctx, sale, told.line),
    )
