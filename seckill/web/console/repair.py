"""The repair, for operators: what `seckill repair` says and does."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.audit import open_auditor
from seckill.web.console.audit import auditor_of
from seckill.web.context import context
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import NewRepair, Repaired

_new_repair = msgspec.json.Decoder(NewRepair)


async def repair(request: Request) -> Response:
    """Uses a new auditor each time, which also reads rounds that were over long ago."""
    ctx = context(request)
    apply = decode(await read_body(request.receive), _new_repair).apply
    auditor_of(ctx)
    async with open_auditor(ctx.settings, every_round=True) as auditor:
        mended = await ctx.repair.run(auditor, apply=apply)
        content = Repaired(
            done=mended.done,
            to_do=[step.says for step in mended.plan.steps],
            for_people=mended.plan.for_people,
            audit=auditor.teller().document(mended.report),
        )
    return json_response(content)
