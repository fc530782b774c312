"""Measures how long recovery takes: until a dead worker's entries are settled, and until a restarted gate accepts
again."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from redis.exceptions import RedisError

from seckill.backends.redis import keys
from seckill.backends.redis.server_choice import open_servers
from seckill.backends.redis.servers import Server, Servers
from seckill.lab.chaos.crew import Crew, Death
from seckill.lab.chaos.evidence import Done, Evidence, Recovery
from seckill.lab.chaos.schedule import DRILLS

POLL_S = 0.02
TAKEOVER_S = 2.0  # added to the silence after which others take over
COMEBACK_S = 3.0
# The longest that a measurement waits.
GIVE_UP_S = 30.0
# A process that died less than this ago may still be starting.
STARTING_S = 4.0

Pending = dict[int, list[Any]]  # lane → entries


class Recoveries:
    def __init__(
        self, evidence: Evidence, crew: Crew, gate_url: str, lanes: int, claim_idle_s: float, clock: Callable[[], float]
    ) -> None:
        self._evidence = evidence
        self._crew = crew
        self._url = gate_url
        self._lanes = lanes
        self._within_s = claim_idle_s + TAKEOVER_S
        self._clock = clock
        self._ready_s: list[float] = []

    async def until_taken_over(self, pid: int) -> int:
        """Waits until others have settled the entries that the process held when it died. Returns how many there
        were."""
        (death,) = [death for death in self._crew.deaths if death.pid == pid][-1:]
        held = entries = None
        servers = open_servers(self._url)
        try:
            while self._clock() - death.at_s < GIVE_UP_S:
                with contextlib.suppress(RedisError, OSError):
                    if held is None:
                        held = await self._held(servers, pid)
                        entries = sum(map(len, held.values()))
                    if not await self._remaining(servers, held):
                        break
                await asyncio.sleep(POLL_S)
        finally:
            await servers.close()
        if entries:
            self._note("takeover", death.at_s, self._clock() - death.at_s, self._within_s)
        return entries or 0

    def gate_is_ready(self, at_s: float) -> None:
        self._ready_s.append(at_s)

    async def until_accepted(self) -> None:
        """Waits until an order is accepted after the last restart of the gate."""
        accepted_s = self._evidence.told.accepted_s
        while not (accepted_s and accepted_s[-1] >= self._ready_s[-1]):
            if self._clock() - self._ready_s[-1] > GIVE_UP_S:
                return
            await asyncio.sleep(POLL_S)

    def finish(self, faults: Sequence[Done]) -> None:
        """Called when everything has been seen: measures from each restart of the gate to the next order, and marks
        which recoveries were calm."""
        for ready_s in self._ready_s:
            after = [at_s for at_s in self._evidence.told.accepted_s if at_s >= ready_s]
            if after:
                self._note("comeback", ready_s, min(after) - ready_s, COMEBACK_S)
        self._evidence.recoveries = [
            replace(recovery, calm=is_calm(recovery, faults, self._crew.deaths))
            for recovery in self._evidence.recoveries
        ]

    def _note(self, what: str, at_s: float, took_s: float, within_s: float) -> None:
        found = Recovery(what=what, at_s=at_s, took_s=round(took_s, 3), within_s=within_s, calm=False)
        self._evidence.recoveries.append(found)

    async def _held(self, servers: Servers, pid: int) -> Pending:
        held: Pending = {}
        for lane in range(self._lanes):
            for group in (keys.WORKERS_GROUP, keys.RELAY_GROUP):
                look = partial(_pending, stream=keys.orders(lane), group=group, pid=pid)
                try:
                    held.setdefault(lane, []).extend(await servers.follow(keys.orders(lane), look))
                except RedisError as error:
                    if not str(error).startswith("NOGROUP"):
                        raise
        return held

    async def _remaining(self, servers: Servers, held: Pending) -> bool:
        for lane, entries in held.items():
            for entry in entries:
                if await servers.follow(keys.orders(lane), partial(_is_there, stream=keys.orders(lane), entry=entry)):
                    return True
        return False


async def _is_there(server: Server, *, stream: str, entry: Any) -> bool:
    return bool(await server.client.xrange(stream, entry, entry))


async def _pending(server: Server, *, stream: str, group: str, pid: int) -> list[Any]:
    """Returns the entries that the process with that pid holds."""
    found: list[Any] = []
    consumers: Any = await server.client.xinfo_consumers(stream, group)
    for consumer in consumers:
        if consumer["pending"] and f"-{pid}-".encode() in consumer["name"]:
            held = await server.client.xpending_range(stream, group, "-", "+", consumer["pending"], consumer["name"])
            found += [entry["message_id"] for entry in held]
    return found


def is_calm(recovery: Recovery, faults: Sequence[Done], deaths: Sequence[Death]) -> bool:
    """Whether nothing else was going on: no fault but a drill, and no death of a process that could have helped."""
    begins_s, ends_s = recovery.at_s, recovery.at_s + recovery.took_s
    for fault in faults:
        if fault.kind in DRILLS and fault.at_s <= begins_s <= fault.ended_s:
            continue
        if fault.at_s < ends_s and fault.ended_s > begins_s:
            return False
    others = [death for death in deaths if not begins_s - 0.5 <= death.at_s <= begins_s + 0.01]
    return not any(begins_s - STARTING_S < death.at_s < ends_s for death in _without_drills(others, faults))


def _without_drills(deaths: Sequence[Death], faults: Sequence[Done]) -> list[Death]:
    """Leaves out the deaths that drills caused themselves."""
    drills = [fault for fault in faults if fault.kind in DRILLS]
    return [
        death
        for death in deaths
        if not any(drill.target == death.member and drill.at_s <= death.at_s <= drill.ended_s for drill in drills)
    ]
