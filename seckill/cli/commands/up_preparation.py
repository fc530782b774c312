"""Preparations of `seckill up` before its roles start. They run in processes that end, so that their memory is freed
and the process that watches over all the others stays small."""

import os
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from cyclopts import Parameter

from seckill.backends.sql.schema import Schema, schema_of
from seckill.bootstrap.engine import Engine, open_engine
from seckill.cli.async_command import run
from seckill.cli.command_settings import environment
from seckill.cli.demo_sales import demo_sale
from seckill.cli.up_announcement import Greeting
from seckill.loops import Stop
from seckill.settings import Secret, Settings
from seckill.web.buyers.buyer_tokens import mint_buyer_token
from seckill.web.pages.help_pages import is_built

TOKEN_LIFETIME_S = 24 * 3600


def up_preparation(what: str, *, fd: Annotated[int, Parameter(show=False)]) -> None:
    """Prepare the ledger for `seckill up`, or the gate, or the gate with demo sales.

    Parameters
    ----------
    what
        One of these.
    fd
        A pipe, which is told when it is done.
    """
    settings = environment()

    async def main(_stop: Stop) -> bytes:
        return await _STEPS[what](settings)

    told = run(main, settings)
    with os.fdopen(fd, "wb") as pipe:
        pipe.write(told)


async def _ledger(settings: Settings) -> bytes:
    if settings.broker_url:
        from seckill.backends.rabbitmq.connections import check_broker  # noqa: PLC0415 (most set-ups have no broker)

        await check_broker(settings.broker_url)  # fails before anything is started
    if await schema_of(settings.database_url) is not Schema.CURRENT:
        from seckill.backends.sql.migration import migrate  # noqa: PLC0415 (slow to load, and not needed the next time)

        await migrate(settings.database_url)
    return b"{}"


async def _gate(settings: Settings, *, demo: bool = False) -> bytes:
    """Refuses unsuitable servers before any role is started."""
    async with open_engine(settings, audits=False) as engine:
        return msgspec.json.encode(await greeting(engine, settings, demo=demo))


async def _demo(settings: Settings) -> bytes:
    return await _gate(settings, demo=True)


_STEPS: dict[str, Callable[[Settings], Awaitable[bytes]]] = {"ledger": _ledger, "gate": _gate, "demo": _demo}


async def greeting(engine: Engine, settings: Settings, *, demo: bool) -> Greeting:
    """With `demo`, makes sales to try things out with."""
    return Greeting(
        buyer_token=None if settings.jwt_secret is None else _buyer_token(settings, settings.jwt_secret),
        sale_id=await demo_sale(engine, settings) if demo else None,
        has_help=is_built(),
    )


def _buyer_token(settings: Settings, secret: Secret) -> str:
    return mint_buyer_token(
        secret,
        f"demo-{secrets.token_hex(3)}",
        lifetime_s=TOKEN_LIFETIME_S,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        now=time.time(),
    )
