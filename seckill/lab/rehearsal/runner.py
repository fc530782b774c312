"""Runs a rehearsal, from the first look at the deployment until the last order is written."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from seckill.client import ClientError
from seckill.errors import StartError
from seckill.lab.rehearsal.crowd import HABITS, Habits, Phase, Shape
from seckill.lab.rehearsal.deployment import BuyersTokens, Deployment, OperatorSite
from seckill.lab.rehearsal.document import Findings, document
from seckill.lab.rehearsal.judgement import Judged, judge
from seckill.lab.rehearsal.marked_sale import MarkedSale, marked_sale, new_run
from seckill.lab.rehearsal.part_costs import Idle, between
from seckill.lab.rehearsal.plan import Budget, next_phase
from seckill.lab.rehearsal.sender_messages import SenderOrders
from seckill.lab.rehearsal.sender_processes import Senders, connections_max, senders
from seckill.lab.rehearsal.watch import EVERY_S, Watch, here
from seckill.loops import Stop
from seckill.settings import Settings

Say = Callable[[str], None]

# Every process publishes its figures once a second: after this time they include the last phase.
SETTLES_S = EVERY_S + 0.3
OPEN_WITHIN_S = 30.0
DRAIN_WITHIN_S = 60.0
# The time that a rehearsal takes besides the load: for the first look, and for the pauses between the phases.
BESIDE_S = 90.0
# How long the costs without buyers are measured.
IDLE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalWanted:
    url: str
    buyers: int
    seconds: float
    need: float | None = None
    senders: int = 1
    lanes: int = 1
    habits: Habits = HABITS
    metrics: tuple[str, ...] = ()
    beside_sales: bool = False
    with_webhooks: bool = False

    @property
    def lasts_s(self) -> float:
        return 2 * self.seconds + BESIDE_S


def own_senders() -> int:
    """Half of the cores, because proxies on this machine may need the others."""
    return max(1, (os.cpu_count() or 1) // 2)


async def run(wanted: RehearsalWanted, settings: Settings, say: Say) -> dict[str, Any]:
    """Returns the document. `settings`: the keys, and the gate's address if that is known."""
    if settings.admin_key is None:
        raise StartError("There is no admin key: set SECKILL_ADMIN_KEY to the deployment's.")
    async with AsyncExitStack() as stack:
        site = OperatorSite(wanted.url, settings.admin_key.reveal())
        stack.push_async_callback(site.close)
        say(f"looking at {site.url}")
        deployment = await site.look()
        await site.refuse_if_unsuitable(
            lasts_s=wanted.lasts_s, beside_sales=wanted.beside_sales, with_webhooks=wanted.with_webhooks
        )
        name = new_run()
        tokens = await site.buyers_tokens(settings, deployment, name, wanted.buyers)
        await site.hide_leftovers()
        return await Rehearsal(wanted, settings, site, deployment, tokens, name, say).run()


class Rehearsal:
    def __init__(
        self,
        wanted: RehearsalWanted,
        settings: Settings,
        site: OperatorSite,
        deployment: Deployment,
        tokens: BuyersTokens,
        name: str,
        say: Say,
    ) -> None:
        self._wanted = wanted
        self._redis_url = settings.redis_url
        self._site = site
        self._deployment = deployment
        self._tokens = tokens
        self._name = name
        self._say = say
        self._buyers = wanted.buyers if tokens.secret else len(tokens.given)
        self._phases: list[Judged] = []
        self._spans: list[tuple[float, float, str]] = []

    async def run(self) -> dict[str, Any]:
        wanted = self._wanted
        self._say("making the marked sale")
        async with marked_sale(
            self._site,
            self._name,
            units=self._buyers,
            lasts_s=wanted.lasts_s,
            costs=self._deployment.no_money_moves,
            invited_only=bool(self._tokens.secret),
            lanes=wanted.lanes,
        ) as marked:
            try:
                findings = await self._hold(marked)
            finally:
                self._say("closing and hiding the sale")
        return document(findings, marked)

    async def _hold(self, marked: MarkedSale) -> Findings:
        watch = Watch(self._site, marked.sale.id, self._wanted.metrics, self._redis_url)
        stop = Stop()
        watching = None
        try:
            await _until_open(watch)
            watching = asyncio.create_task(watch.run(stop))
            async with senders(self._orders(marked.sale.id)) as crowd:
                idle = await _idle(watch)
                await self._play(crowd, watch)
            self._say("waiting until every order is written")
            drain_s = await _drained(watch)
            self._say("auditing")
            return Findings(
                wanted_buyers=self._buyers,
                seconds=self._wanted.seconds,
                need=self._wanted.need,
                senders=self._wanted.senders,
                lanes=self._wanted.lanes,
                habits=self._wanted.habits,
                deployment=self._deployment,
                idle=idle,
                phases=self._phases,
                spans=self._spans,
                readings=watch.readings,
                drain_s=drain_s,
                audit=await self._site.audit(),
                custody=await self._custody(marked.sale.id),
            )
        finally:
            stop.set()
            if watching is not None:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            await watch.close()

    def _orders(self, sale_id: str) -> SenderOrders:
        return SenderOrders(
            url=self._site.url,
            sale_id=sale_id,
            number=0,
            senders=self._wanted.senders,
            buyers=self._buyers,
            run=self._name,
            secret=self._tokens.secret,
            claims=self._tokens.claims,
            tokens=list(self._tokens.given),
            pays=self._deployment.no_money_moves,
            connections_max=connections_max(),
            habits=self._wanted.habits,
        )

    async def _play(self, crowd: Senders, watch: Watch) -> None:
        wanted = self._wanted
        budget = Budget(seconds=wanted.seconds, buyers=self._buyers, need=wanted.need, habits=wanted.habits)
        while (phase := next_phase([each.tried for each in self._phases], budget)) is not None:
            self._say(_words(phase))
            before = await watch.read()
            began_s = watch.now_s()
            seen = await crowd.play(phase)
            ended_s = watch.now_s()
            at_end = await watch.read()
            await asyncio.sleep(SETTLES_S)
            after = await watch.read()
            parts = between(before, at_end, after, max(seen.took_s, phase.seconds), here())
            self._phases.append(judge(phase, seen, parts))
            self._spans.append((began_s, ended_s, _words(phase)))
            if seen.out_of_buyers:
                break

    async def _custody(self, sale_id: str) -> dict[str, int]:
        try:
            found = await self._site.client.custody(sale_id)
        except ClientError:
            return {}
        names = ("total", "available", "queued", "unpaid", "paid", "returning", "dead", "sold")
        return {name: getattr(found, name) for name in names}


def _words(phase: Phase) -> str:
    if phase.shape is Shape.WAVE:
        return f"an opening with {phase.rate:,.0f} presses a second at its peak, {phase.seconds:.0f} s"
    return f"{phase.rate:,.0f} presses a second, {phase.seconds:.0f} s"


async def _until_open(watch: Watch) -> None:
    give_up_s = time.monotonic() + OPEN_WITHIN_S
    while (await watch.read()).accepted is None:
        if time.monotonic() > give_up_s:
            raise StartError("The marked sale does not open: see `seckill doctor` at the deployment.")
        await asyncio.sleep(0.2)


async def _idle(watch: Watch) -> Idle:
    """Runs while the senders start: they are not part of what is measured."""
    before = await watch.read()
    await asyncio.sleep(IDLE_S)
    after = await watch.read()
    return Idle.of(between(before, after, after, IDLE_S, here()))


async def _drained(watch: Watch) -> float | None:
    """Returns how long it took until every accepted order was written, or None if that took longer than we wait."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < DRAIN_WITHIN_S:
        reading = await watch.read()
        if reading.accepted is not None and reading.persisted >= reading.accepted and not reading.backlog:
            return time.monotonic() - began_s
        await asyncio.sleep(0.2)
    return None
