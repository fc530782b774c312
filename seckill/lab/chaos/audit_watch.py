"""Audits and reads the length of the queue every second, throughout the run."""

import asyncio
import contextlib
from collections.abc import Callable

from redis.exceptions import RedisError

from seckill.audit import Auditor, Report, Verdict
from seckill.backends.redis import keys
from seckill.backends.redis.server_choice import open_servers
from seckill.backends.redis.servers import Servers
from seckill.errors import SeckillError
from seckill.lab.chaos.evidence import Evidence, Sight

EVERY_S = 1.0
# A look gives up on a hanging server after this time; the next one comes anyway.
WITHIN_S = 10.0
# When the faults are over, every audit gets a verdict within this time, however slow the machine is.
LAST_WITHIN_S = 180.0
NAMED_MAX = 20


class AuditWatch:
    def __init__(
        self, auditor: Auditor, evidence: Evidence, gate_url: str, lanes: int, clock: Callable[[], float]
    ) -> None:
        self._auditor = auditor
        self._evidence = evidence
        self._url = gate_url
        self._lanes = lanes
        self._clock = clock

    async def run(self, enough: asyncio.Event) -> None:
        servers = open_servers(self._url)
        try:
            while not enough.is_set():
                began_s = self._clock()
                with contextlib.suppress(RedisError, OSError, TimeoutError):
                    async with asyncio.timeout(EVERY_S):
                        waiting = [await _length(servers, keys.orders(lane)) for lane in range(self._lanes)]
                        self._evidence.backlog.append((round(began_s, 2), sum(waiting)))
                await self._look(WITHIN_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.01, EVERY_S - (self._clock() - began_s))):
                        await enough.wait()
            await self._have_told()
        finally:
            await servers.close()

    async def _have_told(self) -> None:
        """Makes sure that there is a verdict, even on a machine so busy that every earlier look was broken off."""
        give_up_at_s = self._clock() + LAST_WITHIN_S
        while all(sight.verdict == Verdict.UNKNOWN for sight in self._evidence.sights):
            if (left_s := give_up_at_s - self._clock()) <= 0:
                return
            await self._look(left_s)

    async def _look(self, within_s: float) -> None:
        at_s = self._clock()
        try:
            async with asyncio.timeout(within_s):
                report = await self._auditor.read()
        except (TimeoutError, SeckillError):
            self._evidence.sights.append(Sight(at_s=at_s, verdict=Verdict.UNKNOWN, broken={}))
            return
        self._evidence.sights.append(Sight(at_s=at_s, verdict=report.verdict, broken=findings(report, self._auditor)))


async def _length(servers: Servers, stream: str) -> int:
    return await servers.follow(stream, lambda server: server.client.xlen(stream))


def findings(report: Report, auditor: Auditor) -> dict[str, list[str]]:
    teller = auditor.teller()
    return {
        result.invariant.name: [teller.sentence(finding) for finding in result.findings[:NAMED_MAX]]
        for result in report.results
        if result.findings
    }
