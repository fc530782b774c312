"""Injects the scheduled faults into servers, processes and links, and finds out whether they had any effect."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import cast

from redis.exceptions import RedisError

from seckill.errors import SeckillError
from seckill.failpoints import VARIABLE
from seckill.lab.chaos import disks
from seckill.lab.chaos.evidence import Amnesia, Done, Evidence
from seckill.lab.chaos.place import ChaosPlace
from seckill.lab.chaos.recovery_times import Recoveries
from seckill.lab.chaos.schedule import Fault
from seckill.lab.chaos.servers.server import Can, Forgetful, Silenceable, is_stopped
from seckill.lab.servers.proxy import Trouble

POLL_S = 0.02
# A fault waits this long for its target to run and do something: on a busy machine it may still be starting.
PATIENCE_S = 15.0
DIED_WITHIN_S = 3.0
# Enough time for a drill's worker to start, read and die.
DRILL_WITHIN_S = 60.0
# A server whose last write found the disk full ends within this time.
ENDS_WITHIN_S = 0.3
# For each link, or kind of database: bytes of a request whose answer matters, and bytes of that answer.
ANSWERS: dict[str, tuple[bytes, bytes]] = {
    "api→gate": (b"EVALSHA", b""),
    "worker→gate": (b"XACK", b""),
    "keeper→gate": (b"EVALSHA", b""),
    "postgresql": (b"COMMIT;\0", b"COMMIT"),
    "mysql": (b"\x03COMMIT", b""),
}
# How far the clock of each role is set off. Tokens must stay valid for the API.
STEPS_S = {"api": 1200, "worker": -86_400, "keeper": 3600}


class Injector:
    def __init__(
        self,
        place: ChaosPlace,
        evidence: Evidence,
        recoveries: Recoveries,
        clock: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self._place = place
        self._evidence = evidence
        self._recoveries = recoveries
        self._clock = clock
        self._say = say
        self._one_at_a_time: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def _gate(self) -> Forgetful:
        return cast("Forgetful", self._place.servers["gate"])

    async def inject(self, fault: Fault) -> None:
        # On a busy machine a fault may take longer than planned, so the next one on the same target waits for its end.
        async with self._one_at_a_time[fault.target]:
            await self._inject(fault)

    async def _inject(self, fault: Fault) -> None:
        self._say(f"{fault.kind} {fault.target}")
        began_s = self._clock()
        try:
            bit = await self._do(fault)
        except (SeckillError, RedisError, OSError, TimeoutError) as error:
            bit = ""
            self._evidence.notes.append(f"{fault.kind} {fault.target} failed: {error}")
        done = Done(at_s=began_s, ended_s=self._clock(), kind=fault.kind, target=fault.target, bit=bit)
        self._evidence.done.append(done)

    async def _do(self, fault: Fault) -> str:
        match fault.kind:
            case "takeover":
                return await self._drill(fault.target)
            case "kill":
                return await self._kill(fault.target)
            case "freeze":
                return await self._freeze(fault)
            case "clock":
                return await self._clock_step(fault)
            case "pause":
                return await self._pause(fault)
            case "restart" | "comeback" | "torn":
                return await self._restart(fault)
            case "silent":
                return await self._silence(fault)
            case "flush" | "empty":
                return await self._forget(restart=fault.kind == "empty")
            case "starve":
                return await self._starve(fault.lasts_s)
            case "full-disk":
                return await self._fill(fault)
            case _:
                return await self._link(fault)

    async def _until(self, there: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
        give_up_at_s = self._clock() + within_s
        while not there():
            if self._clock() > give_up_at_s:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def _kill(self, member: str) -> str:
        await self._until(lambda: self._place.crew.is_running(member))
        pid = self._place.crew.kill(member)
        return f"pid {pid} is gone" if await self._died(pid) else ""

    async def _died(self, pid: int, within_s: float = DIED_WITHIN_S) -> bool:
        return await self._until(lambda: any(death.pid == pid for death in self._place.crew.deaths), within_s)

    async def _drill(self, member: str) -> str:
        """Kills a worker twice, the second time by its own failpoint, at the moment when it holds entries."""
        crew = self._place.crew
        point = "relay.source.read.after" if "broker" in self._place.servers else "worker.transport.read.after"
        crew.prepare(member, {VARIABLE: f"{point}=kill"})
        pid = await crew.replace(member)
        if pid is None or not await self._died(pid, DRILL_WITHIN_S):
            return ""
        entries = await self._recoveries.until_taken_over(pid)
        return f"{entries} entries taken over" if entries else ""

    async def _freeze(self, fault: Fault) -> str:
        await self._until(lambda: self._place.crew.is_running(fault.target))
        pid = self._place.crew.pause(fault.target)
        try:
            await asyncio.sleep(fault.lasts_s / 2)
            stopped = is_stopped(pid)
            await asyncio.sleep(fault.lasts_s / 2)
        finally:
            self._place.crew.resume(pid)
        return f"pid {pid} stood still" if stopped else ""

    async def _clock_step(self, fault: Fault) -> str:
        """Gives the process one life with a wrong clock, which ends with the fault if no failpoint has ended it
        before."""
        crew, clocks = self._place.crew, self._place.clocks
        step_s = STEPS_S[fault.target.partition("-")[0]]
        crew.prepare(fault.target, clocks.environ(step_s))
        pid = await crew.replace(fault.target)
        if pid is None:
            return ""
        await asyncio.sleep(fault.lasts_s / 2)
        governed = clocks.governs(pid)
        await asyncio.sleep(fault.lasts_s / 2)
        if crew.member(fault.target).pid == pid:
            crew.kill(fault.target)
        return f"pid {pid} lived with its clock off by {step_s:+d} s" if governed else ""

    async def _pause(self, fault: Fault) -> str:
        server = self._place.servers[fault.target]
        server.pause()
        try:
            await asyncio.sleep(fault.lasts_s)
            stopped = [pid for pid in server.pids() if is_stopped(pid)]
        finally:
            server.resume()
        return f"{len(stopped)} processes stood still" if stopped else ""

    async def _restart(self, fault: Fault) -> str:
        server = self._place.servers[fault.target]
        pids = server.pids()
        await server.kill()
        torn = await self._gate.tear() if fault.kind == "torn" else 0
        await asyncio.sleep(fault.lasts_s)
        await server.start()
        if fault.target == "gate":
            self._recoveries.gate_is_ready(self._clock())
        if fault.kind == "comeback":
            await self._recoveries.until_accepted()
        return f"{torn} bytes of a write cut off" if torn else f"{len(pids)} processes killed" if pids else ""

    async def _silence(self, fault: Fault) -> str:
        """Silences a replica: the server that takes over must still have everything that was answered meanwhile."""
        gate = cast("Silenceable", self._place.servers[fault.target])
        await gate.silence()
        try:
            await asyncio.sleep(fault.lasts_s)
            unheard = await gate.unheard()
            await gate.kill()
        finally:
            gate.resume()
        await gate.start()
        self._recoveries.gate_is_ready(self._clock())
        return f"{unheard} bytes never reached the server that took over" if unheard else ""

    async def _forget(self, *, restart: bool) -> str:
        keys, queued = await self._gate.forget(restart=restart)
        # Whatever was acknowledged until the call returned may have been lost as well.
        self._evidence.amnesias.append(Amnesia(at_s=self._clock(), queued=queued))
        return f"{keys} keys gone, {len(queued)} orders queued in them" if keys else ""

    async def _starve(self, lasts_s: float) -> str:
        refused, until_s = 0, self._clock() + PATIENCE_S
        while not refused and self._clock() < until_s:
            await self._gate.starve()
            try:
                await asyncio.sleep(lasts_s)
            finally:
                refused = await self._gate.feed()
        return f"{refused} commands refused" if refused else ""

    async def _fill(self, fault: Fault) -> str:
        server = self._place.servers[fault.target]
        assert server.folder is not None
        running = bool(server.pids())
        taken = await asyncio.to_thread(disks.fill, server.folder)
        try:
            await asyncio.sleep(fault.lasts_s)
            full = disks.is_full(server.folder)
        finally:
            disks.free(server.folder)
        await asyncio.sleep(ENDS_WITHIN_S)
        gone = running and not server.pids()
        if gone:
            await server.start()
            if fault.target == "gate":
                self._recoveries.gate_is_ready(self._clock())
        return f"no room left, {taken >> 20} MiB taken{', the server ended' if gone else ''}" if full else ""

    async def _link(self, fault: Fault) -> str:
        proxy = self._place.links[fault.target]
        before, hits = proxy.touched, proxy.hits
        if fault.kind == "cut":
            await self._until(lambda: proxy.connections > 0)
            return f"{cut} connections cut" if (cut := proxy.cut()) else ""
        if fault.kind == "lost-answer":
            scheme = self._place.servers[fault.target.partition("→")[2]].url.partition(":")[0]
            proxy.lose_answer(*(ANSWERS.get(fault.target) or ANSWERS[scheme]))
            lost = await self._until(lambda: proxy.hits > hits)
            proxy.forgive()
            return "done, and the answer lost" if lost else ""
        proxy.set_trouble(Trouble.HOLE if fault.kind == "hole" else Trouble.SLOW)
        try:
            await asyncio.sleep(fault.lasts_s)
            await self._until(lambda: proxy.touched > before)
        finally:
            proxy.set_trouble(None)
        touched = proxy.touched - before
        return f"{touched} portions {'swallowed' if fault.kind == 'hole' else 'delayed'}" if touched else ""

    async def heal(self) -> None:
        """Undoes all faults and restarts every process with no failpoint armed."""
        for proxy in self._place.links.values():
            proxy.set_trouble(None)
            proxy.forgive()
        for server in self._place.servers.values():
            if server.folder is not None:
                disks.free(server.folder)
            server.resume()
            if Can.KILL in server.can and not server.pids():
                await server.start()
        await self._place.crew.disarm()
