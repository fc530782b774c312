"""Shows operators at the console which servers an installation runs on, by asking them now.

`seckill doctor` asks more, and tries out what the account may do; a look from the console changes nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from seckill.backends.sql.schema import Schema, schema_of
from seckill.engine.shared_look import SharedAnswers
from seckill.errors import SeckillError
from seckill.operations.doctor.database import examine_database
from seckill.operations.doctor.examination import Health
from seckill.operations.doctor.gate import examine_gate
from seckill.settings import TABLE, Settings, shown

# A later answer is of no use to an operator who waits for the page.
WITHIN_S = 5.0


class ServerState(StrEnum):
    OK = "ok"
    ADVICE = "advice"  # promises hold, but an operator should know
    MEND = "mend"  # promises do not hold until something is done
    AWAY = "away"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLook:
    part: str  # gate, ledger or broker
    address: str  # without its password
    state: ServerState
    says: str
    answered_ms: float | None  # how long all questions took; None: the server is away
    mend: list[str]
    advice: list[str]


class ServerLooks:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._looking = SharedAnswers[list[ServerLook]]()

    async def look(self) -> list[ServerLook]:
        """Asks the servers. All who ask meanwhile share one look."""
        return await self._looking.of("all", self._look)

    async def _look(self) -> list[ServerLook]:
        parts: list[tuple[str, str, Callable[[Settings], Awaitable[Health]]]] = []
        if not self._settings.in_memory:
            parts.append(("gate", "redis_url", _gate))
        if self._settings.database_url:
            parts.append(("ledger", "database_url", _ledger))
        if self._settings.broker_url:
            parts.append(("broker", "broker_url", _broker))
        return list(await asyncio.gather(*(self._ask(*part) for part in parts)))

    async def _ask(self, part: str, name: str, examine: Callable[[Settings], Awaitable[Health]]) -> ServerLook:
        began_s = time.perf_counter()
        took_ms: float | None = None
        try:
            async with asyncio.timeout(WITHIN_S):
                health = await examine(self._settings)
            took_ms = round(1000 * (time.perf_counter() - began_s), 1)
            state = ServerState.MEND if health.mend else ServerState.ADVICE if health.advice else ServerState.OK
        except (SeckillError, TimeoutError, OSError) as error:
            health = Health(str(error) or f"No answer within {WITHIN_S:g} s.")
            state = ServerState.AWAY
        setting = next(each for each in TABLE if each.name == name)
        return ServerLook(
            part=part,
            address=shown(setting, self._settings),
            state=state,
            says=health.says,
            answered_ms=took_ms,
            mend=health.mend,
            advice=health.advice,
        )


async def _gate(settings: Settings) -> Health:
    # Our own server listens on a socket that no other user may open.
    return await examine_gate(settings.redis_url, settings.durability, embedded=settings.redis_url.startswith("unix:"))


async def _ledger(settings: Settings) -> Health:
    if await schema_of(settings.database_url) is Schema.BEHIND:
        return Health("The schema is behind this version", mend=["Run `seckill migrate`."])
    return await examine_database(settings.database_url, rights=False)


async def _broker(settings: Settings) -> Health:
    from seckill.backends.rabbitmq.connections import check_broker  # noqa: PLC0415 (most do without a broker)

    version = await check_broker(settings.broker_url)
    if version is None:
        raise SeckillError("RabbitMQ does not answer; until it does, orders wait in the streams.")
    return Health(f"RabbitMQ {version}")
