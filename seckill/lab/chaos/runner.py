"""One run: servers and roles, load, drills, the storm, then recovery, and the books."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from seckill.audit import open_auditor
from seckill.client import AsyncClient
from seckill.errors import StartError
from seckill.lab.chaos.audit_watch import AuditWatch
from seckill.lab.chaos.buyer_calls import Caller, Unanswered
from seckill.lab.chaos.buyers import OFFERS, ChaosBuyers, OnSale
from seckill.lab.chaos.document import document
from seckill.lab.chaos.event_books import EventBooks
from seckill.lab.chaos.evidence import Evidence
from seckill.lab.chaos.failpoint_plan import required
from seckill.lab.chaos.faults import Injector
from seckill.lab.chaos.feed_watch import FeedWatch, open_nodes
from seckill.lab.chaos.final_books import Closing
from seckill.lab.chaos.judgement import judge
from seckill.lab.chaos.missed_windows import insist
from seckill.lab.chaos.place import ChaosPlace, Wanted, place
from seckill.lab.chaos.recovery_times import Recoveries
from seckill.lab.chaos.schedule import DRILLS, KINDS, Fault, Option, plan, storm_begins_s
from seckill.lab.chaos.sell_out import SellOut
from seckill.lab.chaos.webhook_receiver import WebhookReceiver

READY_WITHIN_S = 60.0
POLL_S = 0.1
MINUTE_S = 60

Say = Callable[[str], None]


class Shop(NamedTuple):
    """What a shop has that follows the events: feed and webhooks, and the books that judge them."""

    feed: FeedWatch
    receiver: WebhookReceiver
    books: EventBooks


class Run:
    """`say` is called with what happens, `advance` with the seconds of the run that have passed."""

    def __init__(
        self, wanted: Wanted, minutes: float, kinds: Sequence[str], say: Say, advance: Callable[[float], None]
    ) -> None:
        self._wanted = wanted
        self._seconds = minutes * MINUTE_S
        self._kinds = set(kinds)
        self._say = say
        self._advance = advance
        self._evidence = Evidence()
        self._began_s = time.monotonic()

    def _clock(self) -> float:
        return time.monotonic() - self._began_s

    def _tell(self, what: str) -> None:
        """Adds the time at which it happens."""
        self._advance(self._clock())
        self._say(what)

    async def run(self) -> dict[str, Any]:
        self._say("starting servers and roles")
        async with place(self._wanted, self._clock) as here:
            self._evidence.notes += here.notes
            schedule = plan(self._wanted.seed, self._seconds, self._options(here))
            storm_s = self._seconds - storm_begins_s(schedule)
            self._evidence.required = required(here.windows, self._wanted.seed, storm_s) if storm_s > 0 else []
            async with open_auditor(here.settings, every_round=True) as auditor, self._shop(here) as shop:
                sales = await self._announce(here)
                closing = Closing(here.settings, auditor, self._evidence, self._clock)
                try:
                    await self._live(here, schedule, sales, auditor, closing, shop)
                finally:
                    await closing.close()
            self._evidence.fired = here.crew.fired()
            servers = {name: server.name for name, server in here.servers.items()}
            starts = dict(here.crew.starts)
        return document(self._evidence, judge(self._evidence), schedule, servers=servers, starts=starts)

    def _options(self, here: ChaosPlace) -> list[Option]:
        return [(kind, target) for kind, target in here.options() if kind in self._kinds]

    @asynccontextmanager
    async def _shop(self, here: ChaosPlace) -> AsyncIterator[Shop]:
        """Registers the webhook before the first sale, so that it gets everything that the feed has."""
        key = here.settings.admin_key
        assert key is not None
        evidence, clock = self._evidence, self._clock
        receiver = WebhookReceiver(evidence.arrivals, clock, self._wanted.seed)
        books = EventBooks(here.settings.database_url, evidence, clock)
        async with open_nodes(here.ports, key.reveal()) as nodes:
            try:
                webhook = await self._operate(here, "/v1/admin/webhooks", {"url": await receiver.start()})
                receiver.secret = webhook["secret"]
                yield Shop(FeedWatch(nodes, evidence.feed, clock), receiver, books)
            finally:
                receiver.close()
                await books.close()

    async def _announce(self, here: ChaosPlace) -> list[OnSale]:
        self._say("announcing the sales")
        grown = max(1.0, self._seconds / MINUTE_S)
        sales = []
        now = datetime.now(UTC)
        for offer in OFFERS:
            units = int(offer.units * grown) if offer.wanted else offer.units
            offer = replace(offer, units=units)
            body = {
                "title": offer.title,
                "units": units,
                "limit_per_buyer": offer.limit,
                **({"items": offer.sizes} if offer.items else {"price_cents": offer.price_cents}),
                "pay_within_s": offer.pay_within_s,
                "begins_at": (
                    now.replace(second=0, microsecond=0) if offer.repeat else now + timedelta(seconds=offer.begins_in_s)
                ).isoformat(),
                "ends_at": (
                    now.replace(second=0, microsecond=0) + timedelta(seconds=55)
                    if offer.repeat
                    else now + timedelta(days=1)
                ).isoformat(),
                "repeat": offer.repeat,
                "lanes": offer.lanes,
                "confirm": offer.confirm,
                "vouchers": offer.vouchers,
                "order": offer.order,
                "waiting_list": offer.waiting_list,
                "limit_group": offer.group,
            }
            content = await self._operate(here, "/v1/sales", body)
            item_ids = tuple(item["item_id"] for item in content.get("items", ()))
            sales.append(OnSale(str(content["id"]), offer, item_ids))
            if offer.vouchers:
                await self._upload_codes(here, sales[-1])
        return sales

    async def _upload_codes(self, here: ChaosPlace, sale: OnSale) -> None:
        """Uploads a code for each unit. Nothing is broken yet."""
        key = here.settings.admin_key
        assert key is not None
        async with AsyncClient(f"http://127.0.0.1:{here.ports[0]}", key.reveal()) as operator:
            await operator.upload_vouchers(sale.id, [f"{sale.id}-{place}" for place in range(sale.offer.units)])

    async def _operate(self, here: ChaosPlace, path: str, body: object) -> Any:
        """Sends an operator's request, and repeats it until it is done."""
        key = here.settings.admin_key
        assert key is not None
        caller = Caller(here.ports, 0)
        give_up_at_s = self._clock() + READY_WITHIN_S
        try:
            while True:
                try:
                    status, content = await caller.call("POST", path, key.reveal(), body)
                    # `not_in_force` counts as done, too: the change is stored, and a round that the gate has lost takes
                    # it over later.
                    if status in (200, 201) or content.get("code") == "not_in_force":
                        return content.get("sale", content)
                    reason = f"{status} {content}"
                except Unanswered:
                    reason = "no answer"
                if self._clock() > give_up_at_s:
                    raise StartError(f"The API was not there in time ({reason}): try again on a quieter machine.")
                await asyncio.sleep(POLL_S)
        finally:
            await caller.close()

    async def _live(
        self,
        here: ChaosPlace,
        schedule: Sequence[Fault],
        sales: Sequence[OnSale],
        auditor: Any,
        closing: Closing,
        shop: Shop,
    ) -> None:
        self._began_s = time.monotonic()
        evidence, clock = self._evidence, self._clock
        buyers = ChaosBuyers(here.ports, sales, here.token, evidence.told, clock, self._wanted.seed)
        recoveries = Recoveries(
            evidence, here.crew, here.settings.redis_url, here.settings.lanes, here.settings.claim_idle_s, clock
        )
        injector = Injector(here, evidence, recoveries, clock, self._tell)
        watch = AuditWatch(auditor, evidence, here.settings.redis_url, here.settings.lanes, clock)
        enough, sold, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        wanted = [sale for sale in sales if sale.offer.wanted]
        selling = SellOut(buyers, wanted, here.ports, closing.paid, evidence, clock)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(watch.run(sold))
            tasks.create_task(shop.feed.follow(over))
            crowd = tasks.create_task(buyers.crowd(enough))
            await self._storm(here, schedule, injector)
            self._tell("healing")
            began_s = clock()
            shop.receiver.calm()
            await injector.heal()
            evidence.healing = (began_s, clock())
            enough.set()
            await crowd
            for sale in sales:
                if sale.offer.repeat:  # a future round that the gate has lost is rebuilt only when its time is near
                    await self._operate(here, f"/v1/sales/{sale.id}/close", {})
            self._tell("selling what is left")
            await selling.sell()
            sold.set()
            await watching
            self._tell("waiting until all is at rest")
            await closing.rest()
            await selling.sell_what_came_back(closing.rest)
            over.set()
        self._tell("reading the books")
        await closing.read_books(wanted)
        self._tell("comparing what the shop was told")
        await shop.books.read(shop.feed, shop.receiver)
        recoveries.finish(evidence.done)

    async def _storm(self, here: ChaosPlace, schedule: Sequence[Fault], injector: Injector) -> None:
        """Runs the drills with no process armed. Then it injects the faults as planned, while one process after the
        other is restarted armed. A drill that takes longer on a busy machine delays all that follows."""
        late_s = 0.0
        for fault in (fault for fault in schedule if fault.kind in DRILLS):
            await self._until(fault.at_s + late_s)
            await injector.inject(fault)
            late_s = max(late_s, self._clock() - fault.at_s - KINDS[fault.kind].calm_s)
        await self._until(storm_begins_s(schedule) + late_s)
        self._seconds += late_s
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(here.crew.arm())
            for fault in schedule:
                if fault.kind not in DRILLS:
                    await self._until(fault.at_s + late_s)
                    tasks.create_task(injector.inject(fault))
            await self._until(self._seconds)
        if self._evidence.required:
            self._tell("seeking the windows that were not hit yet")
            await insist(here.crew, here.windows, self._evidence.required, self._clock)

    async def _until(self, at_s: float) -> None:
        while (left_s := at_s - self._clock()) > 0:
            self._advance(self._clock())
            await asyncio.sleep(min(left_s, 0.5))
        self._advance(self._clock())
