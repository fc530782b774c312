"""`PUT /v1/admin/sales/{id}/audience`: the list of buyers of a sale, replaced as a whole."""

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.outcome import Outcome
from seckill.engine.door.audience_desk import NobodyListed
from seckill.web.context import context
from seckill.web.door.audience_file import READERS, portions
from seckill.web.door.door_schemas import AudienceReplaced
from seckill.web.problems import HttpProblem, bad_lines, invalid
from seckill.web.requests.uploaded_lines import BadLine
from seckill.web.requests.uploads import AUDIENCE, pieces, take_rest
from seckill.web.responses import json_response


async def replace_audience(request: Request) -> Response:
    ctx = context(request)
    kind = request.headers.get("content-type", "text/csv").partition(";")[0].strip().lower()
    if kind not in READERS:
        raise invalid("Content-Type", "must be text/csv or application/jsonl")
    sale = await ctx.sale_cache.find_any(request.path_params["sale_id"])
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    body = pieces(request.receive, AUDIENCE)
    try:
        uploaded = await ctx.audience_desk.upload(sale.id, portions(body, READERS[kind]))
    except BadLine as error:
        await take_rest(body)
        raise bad_lines([(error.line, error.why)]) from None
    except NobodyListed:
        raise invalid("body", "has no buyers: one on each line") from None
    if uploaded is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    ctx.sale_cache.put(uploaded.sale)
    await ctx.lists.refresh()  # other nodes see it at their next look at the catalogue
    return json_response(AudienceReplaced(buyers=uploaded.buyers, repeated=uploaded.repeated))
