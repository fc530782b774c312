"""Watches whether the servers are still as they were when the role was started.

A server may come back with another configuration. Its connections are cut then, so the server is checked over each new
connection before the first claim. But CONFIG SET cuts no connection, and we have none to replicas, so all servers are
checked twice a second as well. The rights of our user, which ACL SETUSER changes, are checked less often.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from seckill.backends.redis.append_only_file import FileHistory
from seckill.backends.redis.server_calls import Line
from seckill.backends.redis.servers import Server, Servers
from seckill.backends.redis.suitability import (
    AWAY,
    Facts,
    check_keeping,
    check_replicas,
    is_full,
    look_at,
    look_at_replicas,
    look_at_rights,
    read_facts,
)
from seckill.errors import GateUnavailable, StartError

log = structlog.get_logger()

LOOK_EVERY_S = 0.5
LOOK_WITHIN_S = 2.0
# The check tries fifty commands. Between two checks, a claim that may not be written is refused by the server itself
# and changes nothing.
RIGHTS_EVERY_S = 5.0
# A process that has not checked for this long does so before the next claim.
FRESH_S = 5.0


@dataclass(frozen=True, slots=True)
class Fitness:
    """What is wrong with a primary, with its replicas, and with our rights there; empty if nothing is. `asked_s`: when
    the server was asked. `full`: it has no room for another claim, and itself refuses each one."""

    own: str = ""
    replicas: str = ""
    asked_s: float = -math.inf
    full: bool = False
    rights: str = ""

    @property
    def fault(self) -> str:
        return self.own or self.replicas or self.rights


class ServerWatch:
    def __init__(
        self,
        servers: Servers,
        durability: str,
        replica_acks: int,
        files: FileHistory,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = servers
        self._durability = durability
        self._replica_acks = replica_acks
        self._files = files
        self._monotonic = monotonic
        self._verdicts: dict[str, Fitness] = {}  # by the names of primaries
        self._rights_asked_s: dict[str, float] = {}
        self._out_of_reach: dict[str, list[str]] = {}  # by primary, the replicas that do not answer us
        self._looking = asyncio.Lock()
        self._looked_s = -LOOK_EVERY_S
        self._found: Mapping[str, str] = {}
        self._full: frozenset[str] = frozenset()

    async def require(self, line: Line) -> None:
        """Called before claims go over this connection. Raises GateUnavailable if they must not."""
        name = line.server.name
        verdict = self._verdicts.get(name)
        if verdict is None or not line.connection.looked_at or self._monotonic() - verdict.asked_s > FRESH_S:
            asked_s = self._monotonic()
            verdict = self._judge(name, await read_facts(line), asked_s)
            line.connection.looked_at = True
        if verdict.fault:
            raise GateUnavailable(verdict.fault)

    async def look(self) -> Mapping[str, str]:
        """Returns what is wrong with each primary or its replicas. Callers that ask at the same moment share one
        check."""
        async with self._looking:
            if self._monotonic() - self._looked_s >= LOOK_EVERY_S / 2:
                primaries = await self._primaries()
                await asyncio.gather(*map(self._look_at, primaries))
                self._found = {
                    server.name: self._verdicts[server.name].fault
                    for server in primaries
                    if server.name in self._verdicts
                }
                self._full = frozenset(name for name in self._found if self._verdicts[name].full)
                self._looked_s = self._monotonic()
            return self._found

    def full(self) -> frozenset[str]:
        """Returns the primaries that had no room at the last check."""
        return self._full

    async def _primaries(self) -> Sequence[Server]:
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                return await self._servers.primaries()
        except AWAY as error:
            raise GateUnavailable(f"The gate's servers cannot be found ({type(error).__name__}: {error}).") from error

    async def _look_at(self, server: Server) -> None:
        """Checks one server. One that does not answer is not judged: no claim gets there either."""
        asked_s = self._monotonic()
        if asked_s - self._rights_asked_s.get(server.name, -math.inf) >= RIGHTS_EVERY_S:
            self._rights_asked_s[server.name] = asked_s
            await self._look_at_rights(server)
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                facts = await look_at(server)
        except AWAY:
            return
        self._judge(server.name, facts, asked_s)
        try:
            self._mention(server, await look_at_replicas(self._servers, facts, self._durability, self._files))
            fault = ""
        except StartError as error:
            fault = str(error)
        self._put(server.name, replace(self._verdicts[server.name], replicas=fault))

    async def _look_at_rights(self, server: Server) -> None:
        fault = ""
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                await look_at_rights(server)
        except AWAY:
            return
        except StartError as error:
            fault = str(error)
        self._put(server.name, replace(self._verdicts.get(server.name, Fitness()), rights=fault))

    def _judge(self, name: str, facts: Facts, asked_s: float) -> Fitness:
        """Judges a primary by what it says about itself."""
        known = self._verdicts.get(name, Fitness())
        if asked_s < known.asked_s:  # asked earlier but answered later: the server may have been restarted in between
            return known
        fault = ""
        try:
            check_keeping(facts, self._durability, self._files)
            check_replicas(facts, self._replica_acks)
        except StartError as error:
            fault = str(error)
        return self._put(name, Fitness(fault, known.replicas, asked_s, is_full(facts), known.rights))

    def _put(self, name: str, verdict: Fitness) -> Fitness:
        before = self._verdicts.get(name)
        self._verdicts[name] = verdict
        where = name or self._servers.where
        if verdict.fault and (before is None or before.fault != verdict.fault):
            log.error("a server cannot keep the promises: nobody is admitted there", server=where, reason=verdict.fault)
        elif before is not None and before.fault and not verdict.fault:
            log.warning("a server can keep the promises again", server=where)
        return verdict

    def _mention(self, primary: Server, out_of_reach: list[str]) -> None:
        """Logs once for each replica that we cannot reach: it may be fine, but in a network of its own."""
        for where in out_of_reach:
            if where not in self._out_of_reach.get(primary.name, ()):
                log.warning("a replica cannot be looked at", replica=where, primary=primary.name or self._servers.where)
        self._out_of_reach[primary.name] = out_of_reach
