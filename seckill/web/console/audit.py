"""The audit, for operators: what `seckill audit` says."""

from starlette.requests import Request
from starlette.responses import Response

from seckill.audit import Auditor
from seckill.web.context import Context, context
from seckill.web.problems import HttpProblem
from seckill.web.responses import json_response


async def show_audit(request: Request) -> Response:
    """Reads again for every request. All orders are compared at the first request, when the counters look wrong, with
    `?full=true`, and otherwise as often as it costs little."""
    ctx = context(request)
    auditor = auditor_of(ctx)
    report = await auditor.read(full=request.query_params.get("full") == "true")
    return json_response(auditor.teller().document(report))


def auditor_of(ctx: Context) -> Auditor:
    if ctx.auditor is None:
        raise HttpProblem(409, "not_available", "With memory:// there is nothing that an auditor could read.")
    return ctx.auditor
