"""Runs one strategy: a calm run that counts and times, then one in which a process is killed in the middle.

Where orders may fall through and units come back, the run has three waves instead: the rush, a second one while the
consumer is slow, and latecomers when everything has settled.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from seckill.errors import StartError
from seckill.lab.compare import result
from seckill.lab.compare.crowd import Crowd
from seckill.lab.compare.database_watch import watching
from seckill.lab.compare.ladder import LADDER
from seckill.lab.compare.moments import Moments
from seckill.lab.compare.processes import ComparedProcess, Staff
from seckill.lab.compare.release_schemes import FALLS_EVERY
from seckill.lab.compare.result import Count, Crash, StrategyOutcome
from seckill.lab.compare.strategy import CompareServers, Strategy
from seckill.lab.compare.workload import Workload, waves

ASK_EVERY_S = 0.05
# A strategy that has not reached the moment within this time never will.
MOMENT_WITHIN_S = 60.0
# How long the other processes go on while one stands still in the middle of an order, before it is killed.
GRACE_S = 0.5

# The consumer of the give-back schemes stands still twice: with its first order, until the rush has been answered, and
# with the first order after one that fell through.
SLOW_AT = (1, FALLS_EVERY)

Say = Callable[[str], None]


class Runner:
    def __init__(self, servers: CompareServers, workload: Workload, folder: Path, say: Say) -> None:
        self._servers = servers
        self._workload = workload
        self._folder = folder
        self._say = say

    async def run(self, name: str) -> StrategyOutcome:
        kind = LADDER[name]
        reason = kind.missing(self._servers)
        if reason is not None:
            return StrategyOutcome.of(kind, not_run=reason)
        strategy = kind(self._servers, Moments())
        try:
            if kind.returns:
                return await self._with_returns(strategy)
            return await self._without_returns(strategy)
        finally:
            await strategy.close()

    async def _without_returns(self, strategy: Strategy) -> StrategyOutcome:
        self._say("the rush")
        async with self._open(strategy) as (_, crowd):
            presses = self._workload.presses()
            async with watching(strategy) as watch:
                await crowd.press(presses)
                await watch.drained(crowd)
            calm = await self._count(strategy, crowd, len(presses))
            speed = result.speed(crowd.tally, calm.persisted, watch.changed_s)
        crash = await self._crash(strategy)
        return StrategyOutcome.of(type(strategy), count=calm, speed=speed, crash=crash)

    async def _crash(self, strategy: Strategy) -> Crash:
        assert strategy.dies is not None
        self._say(f"kill -9 of a {strategy.dies}")
        first, second = waves(self._workload.presses(), 2)
        async with self._open(strategy, stand_at=(strategy.dies_at,)) as (staff, crowd):
            rush = asyncio.create_task(crowd.press(first))
            victim = await self._first_to_stand(strategy, staff)
            await asyncio.wait([rush], timeout=GRACE_S)
            before = len(crowd.tally.accepted), await strategy.written()
            await victim.kill()
            for other in staff.of(strategy.dies):
                if other is not victim:
                    other.at_ease()
            await rush
            await victim.start()
            again = [*crowd.tally.unanswered, *second]
            crowd.tally.unanswered.clear()
            async with watching(strategy) as watch:
                await crowd.press(again)
                await watch.drained(crowd)
            return Crash(
                killed=strategy.dies,
                accepted_before=before[0],
                persisted_before=before[1],
                count=await self._count(strategy, crowd, len(first) + len(second)),
            )

    async def _with_returns(self, strategy: Strategy) -> StrategyOutcome:
        presses = self._workload.presses()
        rush, second, latecomers = waves(presses, 3)
        slow = strategy.group == "give-back"
        async with (
            self._open(strategy, stand_at=SLOW_AT if slow else ()) as (staff, crowd),
            watching(strategy) as watch,
        ):
            consumer = next(staff.of("consumer"))
            self._say("the rush")
            await crowd.press(rush)
            if slow:
                await self._go_on(strategy, consumer)
                await self._stands(strategy, consumer)
            self._say("a second wave, while orders are on their way")
            await crowd.press(second)
            if slow:
                await self._go_on(strategy, consumer)
            await watch.drained(crowd)
            if not slow:
                await self._fall_through(staff, crowd)
            self._say("latecomers")
            await crowd.press(latecomers)
            await watch.drained(crowd)
            counted = await self._count(strategy, crowd, len(presses))
            return StrategyOutcome.of(type(strategy), count=counted)  # not timed: its consumer was held up on purpose

    async def _first_to_stand(self, strategy: Strategy, staff: Staff) -> ComparedProcess:
        assert strategy.dies is not None
        give_up_at_s = time.monotonic() + MOMENT_WITHIN_S
        while time.monotonic() < give_up_at_s:
            for member in staff.of(strategy.dies):
                if await member.stands(0):
                    return member
            await asyncio.sleep(ASK_EVERY_S)
        raise StartError(f"{strategy.name} sold too little to be killed in the middle: give it more stock.")

    async def _stands(self, strategy: Strategy, member: ComparedProcess) -> None:
        if not await member.stands(MOMENT_WITHIN_S):
            raise StartError(f"{strategy.name} had too few orders: give it more stock or more buyers.")

    async def _go_on(self, strategy: Strategy, member: ComparedProcess) -> None:
        await self._stands(strategy, member)
        member.go_on()

    async def _fall_through(self, staff: Staff, crowd: Crowd) -> None:
        """Every fourth buyer cancels. Then each shop is asked until it sells all of these units again."""
        self._say("every fourth order falls through")
        door = staff.doors[0]
        fallen = list(crowd.tally.accepted.items())[FALLS_EVERY - 1 :: FALLS_EVERY]
        for order, buyer in fallen:
            await crowd.ask(door, f"fall {order} {buyer}")
        give_up_at_s = time.monotonic() + MOMENT_WITHIN_S
        for door in staff.doors:
            while await crowd.ask(door, f"sells? {len(fallen)}") != "yes":
                if time.monotonic() > give_up_at_s:
                    raise StartError("Units that came back were not on sale again in time: see the log of the keeper.")
                await asyncio.sleep(ASK_EVERY_S)

    @asynccontextmanager
    async def _open(self, strategy: Strategy, stand_at: tuple[int, ...] = ()) -> AsyncIterator[tuple[Staff, Crowd]]:
        await strategy.prepare(self._workload.stock)
        staff = Staff(strategy.name, self._servers, self._folder)
        try:
            await staff.start(strategy.dies or "consumer", stand_at)
            yield staff, Crowd(staff.doors)
        finally:
            await staff.kill()

    async def _count(self, strategy: Strategy, crowd: Crowd, offered: int) -> Count:
        return result.count(
            crowd.tally,
            await strategy.persisted(),
            await strategy.fallen(),
            offered=offered,
            stock=self._workload.stock,
            limit_per_buyer=self._workload.limit_per_buyer,
        )
