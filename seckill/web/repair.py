"""The repair, for operators: what `seckill repair` says and does."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.audit import open_auditor
from seckill.repairing import Repair
from seckill.web.audit import auditor_of
from seckill.web.body import decode, read_body
from seckill.web.context import context
from seckill.web.schemas import NewRepair, Repaired

_new_repair = msgspec.json.Decoder(NewRepair)


async def repair(request: Request) -> Response:
    """Each time with an auditor of its own, which also reads the rounds that were over long ago."""
    ctx = context(request)
    ctx.require_operator(request)
    apply = decode(await read_body(request.receive), _new_repair).apply
    auditor_of(ctx)
    settings = ctx.settings
    mender = Repair(ctx.engine, claim_idle_s=settings.claim_idle_s, retry_delay_s=settings.retry_delays_s[0])
    async with open_auditor(settings, every_round=True) as auditor:
        mended = await mender.run(auditor, apply=apply)
        content = Repaired(
            done=mended.done,
            to_do=[step.says for step in mended.plan.steps],
            for_people=mended.plan.for_people,
            audit=auditor.teller().document(mended.report),
        )
    return Response(msgspec.json.encode(content), 200, {"Cache-Control": "no-store"}, "application/json")
