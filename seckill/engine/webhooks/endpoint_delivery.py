"""One keeper's work for one endpoint, from taking it until nothing is left to do: a sitting.

Events come from the feed, after the endpoint's cursor. They are sent side by side, but those of one subject one after
the other. The cursor moves on when everything before it is settled, that is delivered, or written down as a waiting
delivery. This is noted now and then, in one transaction. When a keeper dies, the next one sends again what was not
noted.
"""

import asyncio
import itertools
import math
import random
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import structlog

from seckill.domain.webhook import DeliveryState, DeliveryTrouble, DisabledBy
from seckill.domain.webhook_retries import FAILURES_MAX, GIVE_UP_S, SEND_WITHIN_S, rest_s, retry_after_s
from seckill.domain.webhook_target import BadTarget, read_target
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.event_feed import EventFeed
from seckill.engine.traces.traced_delivery import send_traced
from seckill.engine.webhooks.message import Clock, Describe, WebhookMessage, message_of, message_of_test, subject_of
from seckill.errors import LedgerUnavailable
from seckill.failpoints import reached
from seckill.loops import Stop
from seckill.ports.feed import CursorGone, EventFilter, FeedEvent
from seckill.ports.tracer import Tracer
from seckill.ports.webhook import (
    DispatchLedger,
    Lease,
    Missed,
    NewDelivery,
    Noted,
    Progress,
    Sent,
    TriedDelivery,
    WebhookDelivery,
    WebhookSender,
)
from seckill.telemetry import WEBHOOK_DELIVERIES

log = structlog.get_logger()

# How long an endpoint is left to the keeper that has taken it.
LEASE_S = 30.0
# The lease is renewed at least this often. A delivery on its way may miss an operator's change for as long.
RENEW_EVERY_S = 1.0
# How many deliveries to one endpoint may be under way, and how many of them may be retries, which may be slow for a
# reason.
AT_ONCE = 16
REPEATED_AT_ONCE = 8
# How many events are read ahead.
WINDOW = 1024
PAGE = 256
# Deliveries are noted after this many, or after this time. If a keeper dies, no more than that is sent again.
NOTE_AFTER = 500
NOTE_EVERY_S = 0.5
# A delivery that takes longer is written down as a waiting one, so that the cursor can move on.
SLOW_S = 1.0
# How many deliveries may wait for one endpoint. Beyond that, no more events are read until some are settled.
WAITING_MAX = 10_000
# A sitting ends when there was nothing to do for this long, and in any case after this.
LINGER_S = 3.0
LONGEST_S = 60.0
TURN_S = 0.25
# At the end, deliveries on their way have this long to arrive; the next keeper sends the others again.
LAST_WORDS_S = 5.0
TRIES_TO_NOTE_EVERY_S = 0.2


@dataclass(slots=True)
class _Job:
    """One delivery of this sitting."""

    event_id: str
    type: str
    subject: str
    cursor: int | None
    event: FeedEvent | None = None  # None: has to be read again, or is a test
    by_hand: bool = False
    tries: int = 0  # before this one
    has_row: bool = False
    began_s: float | None = None
    outcome: NewDelivery | None = (
        None  # for a delivery from the feed: what the ledger has to know about it before the cursor moves on
    )


@dataclass(slots=True)
class _Unnoted:
    """What has happened since the ledger was told last."""

    new: list[NewDelivery] = field(default_factory=list)
    tried: list[TriedDelivery] = field(default_factory=list)
    delivered: bool = False
    recovered: bool = False
    missed: Missed | None = None
    is_gone: bool = False

    @property
    def count(self) -> int:
        return len(self.new) + len(self.tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class SittingParts:
    """What every sitting needs."""

    ledger: DispatchLedger
    feed: EventFeed
    sender: WebhookSender
    describe: Describe
    alarm: Alarm
    private: bool
    lease_s: float = LEASE_S
    clock: Clock = time.time
    tracer: Tracer | None = None


class Sitting:
    def __init__(self, parts: SittingParts, lease: Lease, taken_s: float, stop: Stop) -> None:
        self._parts = parts
        self._lease = lease
        self._webhook = lease.webhook
        self._stop = stop
        self._began_s = taken_s
        self._noted_s = taken_s  # when the lease was renewed
        self._busy_s = taken_s  # when there was last something to do
        self._looked_s = self._read_s = -math.inf  # when it last looked for due deliveries, and for events
        self._failures = lease.webhook.failures
        self._failed_now = False
        self._cursor = self._read_to = lease.webhook.cursor
        self._window: deque[_Job] = deque()
        self._sending: dict[asyncio.Task[Sent], _Job] = {}
        # Subjects with a waiting delivery, as far as is known here: what follows has to wait behind it.
        self._held: set[str] = set()
        self._unnoted = _Unnoted()
        self._over = False

    async def run(self) -> None:
        try:
            while not self._is_over():
                await self._take_up()
                await self._until_something_happens()
                self._settle_sent()
                if self._has_to_note():
                    await self._note()
            await self._finish()
        finally:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)

    def _is_over(self) -> bool:
        now_s = time.monotonic()
        if self._over or self._stop.is_set() or self._must_rest or now_s > self._began_s + LONGEST_S:
            return True
        return not self._sending and not self._window and now_s > self._busy_s + LINGER_S

    @property
    def _must_rest(self) -> bool:
        return self._failed_now and self._failures >= FAILURES_MAX

    @property
    def _room(self) -> int:
        """Returns how many more deliveries may begin: none if the lease might end before they do, and one at a time to
        an endpoint that fails."""
        if not self._may_send:
            return 0
        return (1 if self._failures >= FAILURES_MAX else AT_ONCE) - len(self._sending)

    @property
    def _may_send(self) -> bool:
        return time.monotonic() < self._noted_s + self._parts.lease_s - SEND_WITHIN_S

    # What is to be done

    async def _take_up(self) -> None:
        if not self._may_send:
            return
        now_s = time.monotonic()
        if self._room > 0 and now_s > self._looked_s + TURN_S:
            self._looked_s = now_s
            await self._take_due()
        if self._webhook.enabled and len(self._window) <= WINDOW - PAGE and now_s > self._read_s + TURN_S:
            await self._read_on()
        for job in () if self._over else self._next_jobs():
            self._start(job)
        if self._sending or self._window:
            self._busy_s = time.monotonic()

    async def _take_due(self) -> None:
        """Takes waiting deliveries whose time has come."""
        on_their_way = {job.event_id for job in self._sending.values()}
        on_their_way |= {tried.event_id for tried in self._unnoted.tried}
        repeated = sum(job.has_row for job in self._sending.values())
        room = min(self._room, REPEATED_AT_ONCE - repeated)
        if room <= 0:
            return
        due = await self._parts.ledger.due_deliveries(self._webhook.id, room + len(on_their_way))
        found = [each for each in due if each.event_id not in on_their_way][: max(0, min(room, self._room))]
        if found and not await self._is_as_it_was():
            return
        for delivery in found:
            self._start(_repeated(delivery))
        if len(found) == room:
            self._looked_s = -math.inf  # there may be more

    async def _read_on(self) -> None:
        self._read_s = time.monotonic()
        if await self._parts.ledger.waiting_deliveries(self._webhook.id) >= WAITING_MAX:
            return
        wanted = EventFilter(types=self._webhook.wanted, sale_id=self._webhook.sale_id)
        page = await self._parts.feed.read(self._read_to, wanted, PAGE)
        if isinstance(page, CursorGone):
            await self._skip(page)
            return
        if page.events and not await self._is_as_it_was():
            return
        self._read_to = page.next
        if len(page.events) == PAGE:
            self._read_s = -math.inf  # there may be more already
        if page.events:
            jobs = [_first(event) for event in page.events]
            self._held |= await self._parts.ledger.held_subjects(self._webhook.id, {job.subject for job in jobs})
            self._window.extend(jobs)
        elif not self._window:
            self._cursor = self._read_to

    async def _is_as_it_was(self) -> bool:
        """Whether the webhook is unchanged. This is asked after the events were read, so that no event goes to an
        address, or is signed only with secrets, that an operator replaced before the event happened. If it has changed,
        the next sitting sends them."""
        now = await self._parts.ledger.webhook(self._webhook.id)
        self._over |= now is None or not now.sends_like(self._webhook)
        return not self._over

    async def _skip(self, gone: CursorGone) -> None:
        """The feed no longer has the next events. They are lost for this endpoint, so an alarm says so and the rest is
        sent."""
        after, self._read_to = self._read_to, gone.oldest if self._read_to < gone.oldest else gone.newest
        self._unnoted.missed = Missed(after=after, until=self._read_to)
        if not self._window:
            self._cursor = self._read_to
        facts = {"webhook": str(self._webhook.id), "after": after, "until": self._read_to}
        await self._parts.alarm.raise_(AlarmCause.WEBHOOK_MISSED, facts)

    def _next_jobs(self) -> Iterator[_Job]:
        """Yields the first event of each subject in the window, as far as there is room. Events that have to wait
        behind another delivery are written down."""
        busy = {job.subject for job in self._sending.values()}
        room = self._room
        for job in self._window:
            if job.outcome is not None or job.began_s is not None:
                continue
            if job.subject in self._held:
                self._put_down(job, None)
            elif job.subject not in busy and room > 0:
                room -= 1
                yield job
            busy.add(job.subject)

    # What is done

    def _start(self, job: _Job) -> None:
        job.began_s = time.monotonic()
        self._sending[asyncio.create_task(self._send(job))] = job

    async def _send(self, job: _Job) -> Sent:
        try:
            target = read_target(self._webhook.url, private=self._parts.private)
        except BadTarget:
            return Sent(status=None, trouble=DeliveryTrouble.NOT_ALLOWED)
        message = await self._message(job)
        if message is None:
            return Sent(status=None, trouble=DeliveryTrouble.EVENT_GONE)
        headers = message.headers(self._webhook, int(self._parts.clock()))
        tracer, sender = self._parts.tracer, self._parts.sender
        if tracer is None or not message.trace:
            sent = await sender.send(target, headers, message.body)
        else:
            sent = await send_traced(tracer, sender, target, headers, message)
        reached("webhooks.send.after")
        return sent

    async def _message(self, job: _Job) -> WebhookMessage | None:
        if job.cursor is None:
            return message_of_test(job.event_id, self._webhook, self._parts.clock())
        event = job.event or await self._read_again(job.cursor)
        if event is None:
            return None
        message = message_of(job.event_id, await self._parts.describe(event))
        trace = "" if event.order is None else event.order.trace
        return replace(message, type=event.type, at_ms=event.at_ms, trace=trace)

    async def _read_again(self, cursor: int) -> FeedEvent | None:
        page = await self._parts.feed.read(cursor - 1, EventFilter(), 1)
        found = [] if isinstance(page, CursorGone) else [event for event in page.events if event.cursor == cursor]
        return found[0] if found else None

    async def _until_something_happens(self) -> None:
        if self._sending:
            await asyncio.wait(self._sending, timeout=TURN_S, return_when=asyncio.FIRST_COMPLETED)
        elif not self._unnoted.count:  # otherwise there is something to note
            await self._stop.wait(TURN_S)

    # What came of it

    def _settle_sent(self) -> None:
        for task in [task for task in self._sending if task.done()]:
            job = self._sending.pop(task)
            sent = task.result()
            self._count(job, sent)
            if job.has_row:
                self._note_repeated(job, sent)
            elif sent.is_ok:
                self._settle(job, DeliveryState.DELIVERED, sent)
            else:
                self._put_down(job, sent)
        self._move_on()

    def _count(self, job: _Job, sent: Sent) -> None:
        if sent.trouble is DeliveryTrouble.EVENT_GONE:
            return
        WEBHOOK_DELIVERIES.labels("delivered" if sent.is_ok else "failed").inc()
        self._unnoted.delivered |= sent.is_ok
        if sent.is_ok:
            self._unnoted.recovered |= self._failures >= FAILURES_MAX
            self._failures, self._failed_now = 0, False
        elif not job.by_hand:
            self._failures, self._failed_now = self._failures + 1, True
            if sent.status == 410:
                self._unnoted.is_gone = self._over = True

    def _note_repeated(self, job: _Job, sent: Sent) -> None:
        state = DeliveryState.WAITING
        if sent.is_ok:
            state = DeliveryState.DELIVERED
        elif job.by_hand or sent.trouble is DeliveryTrouble.EVENT_GONE:
            state = DeliveryState.FAILED
        next_s = self._next_s(job, sent)
        self._unnoted.tried.append(TriedDelivery(event_id=job.event_id, state=state, last=sent, next_s=next_s))

    def _put_down(self, job: _Job, sent: Sent | None, next_s: float = 0.0) -> None:
        """Writes the delivery down as waiting. What follows for its subject waits behind it."""
        self._held.add(job.subject)
        self._settle(job, DeliveryState.WAITING, sent, next_s if sent is None else self._next_s(job, sent))

    def _settle(self, job: _Job, state: DeliveryState, sent: Sent | None, next_s: float = 0.0) -> None:
        assert job.cursor is not None
        job.has_row = True
        job.outcome = NewDelivery(
            event_id=job.event_id,
            type=job.type,
            cursor=job.cursor,
            subject=job.subject,
            state=state,
            last=sent,
            next_s=next_s,
        )

    def _next_s(self, job: _Job, sent: Sent) -> float:
        planned_s = retry_after_s(job.tries + 1, random.random())  # noqa: S311 (jitter, not a secret)
        return max(planned_s, sent.retry_after_s or 0.0)

    def _move_on(self) -> None:
        """Moves the cursor past everything that is settled without a gap."""
        now_s = time.monotonic()
        while self._window:
            first = self._window[0]
            if first.outcome is None and first.began_s is not None and now_s > first.began_s + SLOW_S:
                # It stays under way, and its result will be noted like that of any waiting delivery.
                self._put_down(first, None, next_s=self._parts.lease_s)
            if first.outcome is None:
                return
            self._unnoted.new.append(first.outcome)
            self._cursor = first.outcome.cursor
            self._window.popleft()
        self._cursor = self._read_to

    # What the ledger is told

    def _has_to_note(self) -> bool:
        if not self._unnoted.count:
            return time.monotonic() > self._noted_s + RENEW_EVERY_S
        is_idle = not self._sending
        return is_idle or self._unnoted.count >= NOTE_AFTER or time.monotonic() > self._noted_s + NOTE_EVERY_S

    async def _note(self, *, leave: bool = False) -> None:
        """Tries until it is noted: otherwise the deliveries would be sent again."""
        unnoted, self._unnoted = self._unnoted, _Unnoted()
        progress = Progress(
            cursor=self._cursor,
            new=unnoted.new,
            tried=unnoted.tried,
            failures=self._failures,
            rest_s=rest_s(self._failures, random.random()) if self._must_rest else None,  # noqa: S311 (jitter)
            delivered=unnoted.delivered,
            recovered=unnoted.recovered,
            missed=unnoted.missed,
            is_gone=unnoted.is_gone,
            give_up_s=GIVE_UP_S,
            leave=leave,
        )
        asked_s = time.monotonic()
        noted = await self._told(progress)
        if noted is None:
            log.warning("a webhook was taken over by another keeper", webhook=self._webhook.id)
            self._over = True
            return
        self._noted_s = asked_s
        if noted.given_up:
            WEBHOOK_DELIVERIES.labels("given_up").inc(noted.given_up)
            log.warning("deliveries were given up", webhook=self._webhook.id, deliveries=noted.given_up)
        self._over |= not noted.webhook.sends_like(self._webhook)
        if noted.disabled is not None:
            await self._tell_disabled(noted.disabled)

    async def _told(self, progress: Progress) -> Noted | None:
        for tries in itertools.count():
            try:
                return await self._parts.ledger.note_deliveries(self._lease, progress, self._parts.lease_s)
            except LedgerUnavailable:
                if tries and time.monotonic() > self._noted_s + self._parts.lease_s:
                    raise
                await asyncio.sleep(TRIES_TO_NOTE_EVERY_S)
        raise AssertionError("it counts without end")

    async def _tell_disabled(self, why: DisabledBy) -> None:
        self._over = True
        facts = {"webhook": str(self._webhook.id), "reason": why.value, "failures": self._failures}
        await self._parts.alarm.raise_(AlarmCause.WEBHOOK_DISABLED, facts)

    async def _finish(self) -> None:
        if self._sending:
            await asyncio.wait(self._sending, timeout=LAST_WORDS_S if self._stop.is_set() else SEND_WITHIN_S)
        self._settle_sent()
        self._leave_no_gap()
        await self._note(leave=True)

    def _leave_no_gap(self) -> None:
        """Writes down the unsettled events before a settled one as waiting deliveries, so that the cursor can move past
        both. Otherwise the next keeper would send the delivered one again."""
        settled = [place for place, job in enumerate(self._window) if job.outcome is not None]
        for job in itertools.islice(self._window, settled[-1] if settled else 0):
            if job.outcome is None:
                self._put_down(job, None)
        self._move_on()


def _first(event: FeedEvent) -> _Job:
    return _Job(event_id=event.id, type=event.type, subject=subject_of(event), cursor=event.cursor, event=event)


def _repeated(delivery: WebhookDelivery) -> _Job:
    return _Job(
        event_id=delivery.event_id,
        type=delivery.type,
        subject=delivery.subject,
        cursor=delivery.cursor,
        by_hand=delivery.by_hand,
        tries=delivery.tries,
        has_row=True,
    )
