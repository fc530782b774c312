"""The audit, for operators: what `seckill audit` says."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.audit import Auditor
from seckill.web.context import Context, context
from seckill.web.problems import Problem


async def show_audit(request: Request) -> Response:
    """Read again for every request. All orders are compared at the first one, when the counters look wrong, with
    `?full=true`, and otherwise as often as it costs little."""
    ctx = context(request)
    ctx.require_operator(request)
    auditor = auditor_of(ctx)
    report = await auditor.read(full=request.query_params.get("full") == "true")
    document = auditor.teller().document(report)
    return Response(msgspec.json.encode(document), 200, {"Cache-Control": "no-store"}, "application/json")


def auditor_of(ctx: Context) -> Auditor:
    if ctx.engine.auditor is None:
        raise Problem(409, "not_available", "With memory:// there is nothing that an auditor could read.")
    return ctx.engine.auditor
