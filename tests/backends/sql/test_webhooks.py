"""The ledger keeps leases, cursors and waiting deliveries of webhooks, on every database."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select, update

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql import webhook_dispatch as dispatch
from seckill.backends.sql.tables import webhook_deliveries, webhooks
from seckill.domain.webhook import DeliveryState, DeliveryTrouble, DisabledBy, Webhook
from seckill.ports.webhook import (
    Lease,
    Missed,
    NewDelivery,
    Progress,
    Sent,
    TriedDelivery,
    WebhookChange,
    WebhookDraft,
    WebhookStatus,
)
from tests.backends.sql.looking import now_ms, rows, write
from tests.backends.sql.making import draft

LEASE_S = 600.0
DAY_MS = 86_400_000
NONE = 999_999  # no id
GIVE_UP_S = 3 * 86_400.0
OK = Sent(status=200, took_ms=5)
NO_ANSWER = Sent(status=None, trouble=DeliveryTrouble.NO_ANSWER)
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"


async def make(ledger: SqlLedger, **facts: Any) -> Webhook:
    wish: dict[str, Any] = {
        "url": "https://shop.example/hook",
        "types": (),
        "sale_id": None,
        "description": "",
        "enabled": True,
        "secret": SECRET,
    }
    made = await ledger.webhooks.create_webhook(WebhookDraft(**(wish | facts)), 50)
    assert made is not None
    return made


async def happen(ledger: SqlLedger) -> None:
    """Two events."""
    await ledger.create_sale(draft(), lane=0)
    while await ledger.feed.line_up():
        pass


async def taken(ledger: SqlLedger) -> Lease:
    [lease] = await ledger.webhooks.take_webhooks(10, LEASE_S)
    return lease


async def status(ledger: SqlLedger, webhook_id: int) -> WebhookStatus:
    [found] = await ledger.webhooks.list_webhooks(webhook_id)
    return found


def new(cursor: int, state: DeliveryState, last: Sent | None, subject: str = "order 1", **facts: Any) -> NewDelivery:
    return NewDelivery(
        event_id=f"evt_{cursor}", type="order.paid", cursor=cursor, subject=subject, state=state, last=last, **facts
    )


def waiting(cursor: int, subject: str = "order 1", next_s: float = 0.0) -> NewDelivery:
    return new(cursor, DeliveryState.WAITING, NO_ANSWER, subject, next_s=next_s)


def again(cursor: int, state: DeliveryState = DeliveryState.WAITING, last: Sent = NO_ANSWER) -> TriedDelivery:
    return TriedDelivery(event_id=f"evt_{cursor}", state=state, last=last, next_s=60)


async def note(ledger: SqlLedger, lease: Lease, **facts: Any) -> Any:
    progress = Progress(**({"cursor": lease.webhook.cursor, "give_up_s": GIVE_UP_S} | facts))
    return await ledger.webhooks.note_deliveries(lease, progress, LEASE_S)


async def due(ledger: SqlLedger, webhook_id: int) -> list[str]:
    return [each.event_id for each in await ledger.webhooks.due_deliveries(webhook_id, 100)]


async def test_it_begins_with_what_happens_from_now_on(ledger: SqlLedger) -> None:
    await happen(ledger)
    made = await make(ledger, types=("order.*", "sale.created"), sale_id=7, description="a shop")
    assert (made.cursor, made.types, made.sale_id, made.description) == (2, ("order.*", "sale.created"), 7, "a shop")
    assert await ledger.webhooks.take_webhooks(10, LEASE_S) == [], "nothing has happened since"
    await happen(ledger)
    assert (await status(ledger, made.id)).behind == 2
    assert (await taken(ledger)).webhook.id == made.id


async def test_there_are_only_so_many(ledger: SqlLedger) -> None:
    wish = WebhookDraft(url="https://a.example", types=(), sale_id=None, description="", enabled=True, secret=SECRET)
    made = await asyncio.gather(*(ledger.webhooks.create_webhook(wish, 3) for _ in range(6)))
    assert sum(each is not None for each in made) == 3


async def test_what_one_keeper_has_taken_no_other_gets(ledger: SqlLedger, ledger_url: str) -> None:
    made = [(await make(ledger)).id for _ in range(5)]
    await happen(ledger)
    others = [open_ledger(ledger_url) for _ in range(3)]
    try:
        found = await asyncio.gather(*(other.webhooks.take_webhooks(50, LEASE_S) for other in others for _ in range(3)))
    finally:
        for other in others:
            await other.close()
    ids = [lease.webhook.id for leases in found for lease in leases]
    assert len(ids) == len(set(ids))
    assert len({lease.token for leases in found for lease in leases}) == len(ids)
    left = await ledger.webhooks.take_webhooks(50, LEASE_S)  # passed over by those that met others
    assert sorted(ids + [lease.webhook.id for lease in left]) == made
    assert await ledger.webhooks.take_webhooks(50, LEASE_S) == []


async def test_who_has_lost_the_lease_notes_nothing(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    slow = await taken(ledger)
    await write(ledger, update(webhooks).values(lease_ms=1))  # its time is over
    quick = await taken(ledger)
    assert await note(ledger, slow, cursor=2, new=[waiting(1)]) is None
    assert (await status(ledger, made.id)).behind == 2
    assert await ledger.webhooks.deliveries(made.id, None, None, 10) == []
    assert (await note(ledger, quick, cursor=2, leave=True)).webhook.cursor == 2
    assert await note(ledger, quick, cursor=2) is None, "it has left"
    assert (await status(ledger, made.id)).behind == 0


async def test_the_cursor_never_goes_back(ledger: SqlLedger) -> None:
    await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    await note(ledger, lease, cursor=2)
    assert (await note(ledger, lease, cursor=1)).webhook.cursor == 2


async def test_only_the_first_of_a_subject_is_due(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    await note(ledger, lease, cursor=2, new=[waiting(1), waiting(2), waiting(3, "order 2"), waiting(4, "order 3", 60)])
    assert await due(ledger, made.id) == ["evt_1", "evt_3"]
    assert await ledger.webhooks.held_subjects(made.id, {"order 1", "order 3", "order 9"}) == {"order 1", "order 3"}
    assert await ledger.webhooks.waiting_deliveries(made.id) == 4
    await note(ledger, lease, cursor=2, tried=[again(1, DeliveryState.DELIVERED, OK)])
    assert await due(ledger, made.id) == ["evt_2", "evt_3"]
    [delivered] = await ledger.webhooks.deliveries(made.id, DeliveryState.DELIVERED, None, 10)
    assert (delivered.tries, delivered.last, delivered.next_ms) == (2, OK, None)
    await note(ledger, lease, cursor=2, tried=[again(2)])
    assert await due(ledger, made.id) == ["evt_3"], "tried in vain, it waits"


async def test_what_is_delivered_is_kept_only_for_a_while(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "DELIVERED_KEPT", 3)
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    many = [new(cursor, DeliveryState.DELIVERED, OK) for cursor in range(1, 8)]
    await note(ledger, lease, cursor=7, new=[*many, waiting(8)])
    await note(ledger, lease, cursor=9, new=[new(9, DeliveryState.DELIVERED, OK)])
    found = await ledger.webhooks.deliveries(made.id, None, None, 10)
    assert [each.cursor for each in found] == [9, 8, 7, 6], "newest first, and what waits is kept"
    await write(ledger, update(webhook_deliveries).values(tried_ms=await now_ms(ledger) - 8 * DAY_MS))
    assert await ledger.webhooks.prune_deliveries(7 * DAY_MS, 100) == 3
    assert [each.cursor for each in await ledger.webhooks.deliveries(made.id, None, None, 10)] == [8]


async def test_an_endpoint_that_fails_is_left_alone_for_a_while(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    noted = await note(ledger, lease, failures=5, rest_s=60, new=[waiting(1)], leave=True)
    assert (noted.webhook.failures, noted.disabled) == (5, None)
    assert await ledger.webhooks.take_webhooks(10, LEASE_S) == []
    assert await due(ledger, made.id) == []
    await write(ledger, update(webhooks).values(retry_ms=1))
    lease = await taken(ledger)
    assert lease.webhook.failing_ms == noted.webhook.failing_ms
    await note(ledger, lease, cursor=1, new=[waiting(2, "order 2", 3600)])
    assert await due(ledger, made.id) == ["evt_1"]
    await note(ledger, lease, cursor=2, failures=0, delivered=True, recovered=True)
    assert await due(ledger, made.id) == ["evt_1", "evt_2"], "what waited need not wait any longer"
    well = (await status(ledger, made.id)).webhook
    assert (well.failures, well.failing_ms, well.retry_ms) == (0, None, None)
    assert well.delivered_ms


async def test_after_days_it_is_disabled_and_enabled_it_goes_on(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    await note(ledger, lease, cursor=1, failures=6, new=[waiting(1)])
    late_ms = await now_ms(ledger) - 3 * DAY_MS
    await write(ledger, update(webhooks).values(failing_ms=late_ms + 60_000))
    assert (await note(ledger, lease, cursor=1, failures=7, tried=[again(1)])).disabled is None
    await write(ledger, update(webhooks).values(failing_ms=late_ms))
    assert (await note(ledger, lease, cursor=1, failures=1)).disabled is None, "not for one failure in days"
    await write(ledger, update(webhook_deliveries).values(failing_ms=late_ms))
    noted = await note(ledger, lease, cursor=1, failures=8, tried=[again(1)], leave=True)
    assert (noted.disabled, noted.given_up) == (DisabledBy.FAILING, 0)
    assert (noted.webhook.enabled, noted.webhook.disabled_by) == (False, DisabledBy.FAILING)
    assert await ledger.webhooks.take_webhooks(10, LEASE_S) == []
    assert (await status(ledger, made.id)).waiting == 1, "nothing is given up for it"
    off = await ledger.webhooks.change_webhook(made.id, WebhookChange(enabled=False))
    assert off
    assert off.disabled_by is DisabledBy.FAILING, "it was already"
    on = await ledger.webhooks.change_webhook(made.id, WebhookChange(enabled=True))
    assert on
    assert (on.enabled, on.disabled_by, on.failures, on.cursor) == (True, None, 0, 1)
    lease = await taken(ledger)
    assert await due(ledger, made.id) == ["evt_1"]
    assert (await note(ledger, lease, cursor=1, failures=1, tried=[again(1)])).given_up == 0, "tried for as long again"


async def test_what_fails_for_days_is_given_up_and_holds_up_nothing_more(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    await note(ledger, lease, cursor=2, new=[waiting(1), waiting(2)])
    await write(ledger, update(webhook_deliveries).values(failing_ms=await now_ms(ledger) - 3 * DAY_MS - 1))
    noted = await note(ledger, lease, cursor=2, failures=1, tried=[again(1)])
    assert (noted.given_up, noted.disabled) == (1, None)
    assert await due(ledger, made.id) == ["evt_2"]
    counted = await status(ledger, made.id)
    assert (counted.waiting, counted.failed) == (1, 1)


async def test_one_that_says_it_is_gone_is_disabled(ledger: SqlLedger) -> None:
    await make(ledger)
    await happen(ledger)
    noted = await note(ledger, await taken(ledger), cursor=1, failures=1, is_gone=True)
    assert (noted.disabled, noted.webhook.disabled_by) == (DisabledBy.GONE, DisabledBy.GONE)


async def test_a_new_address_is_asked_at_once(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    await note(ledger, lease, cursor=1, failures=9, rest_s=3600, new=[waiting(1, next_s=3600)])
    moved = await ledger.webhooks.change_webhook(made.id, WebhookChange(url="https://b.example/"))
    assert moved
    assert (moved.url, moved.failures, moved.retry_ms) == ("https://b.example/", 0, None)
    assert await due(ledger, made.id) == ["evt_1"]
    noted = await note(ledger, lease, cursor=1, failures=10, rest_s=3600, leave=True)
    assert noted.webhook.retry_ms is None, "how the old one did says nothing about the new one"


async def test_changes(ledger: SqlLedger) -> None:
    made = await make(ledger, types=("order.*",), sale_id=7)
    change = WebhookChange(types=(), all_sales=True, description="other")
    changed = await ledger.webhooks.change_webhook(made.id, change)
    assert changed
    assert (changed.types, changed.sale_id, changed.description, changed.enabled) == ((), None, "other", True)
    assert await ledger.webhooks.change_webhook(NONE, WebhookChange(enabled=True)) is None
    assert (await ledger.webhooks.change_webhook(made.id, WebhookChange())) == changed


async def test_secrets_overlap(ledger: SqlLedger) -> None:
    made = await make(ledger)
    other = SECRET.replace("QUJD", "QUJE")
    rotated = await ledger.webhooks.rotate_secret(made.id, other, 3600)
    assert rotated
    assert rotated.secrets == (other, SECRET)
    assert rotated.overlap_until_ms
    await write(ledger, update(webhooks).values(old_secret_ms=await now_ms(ledger)))
    assert (await status(ledger, made.id)).webhook.secrets == (other,)
    assert await ledger.webhooks.rotate_secret(NONE, other, 0) is None


async def test_by_hand_whatever_else_is_there(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    await note(ledger, lease, cursor=2, new=[new(1, DeliveryState.DELIVERED, OK), waiting(2, next_s=60)], leave=True)
    await ledger.webhooks.change_webhook(made.id, WebhookChange(enabled=False))
    second, first = await ledger.webhooks.deliveries(made.id, None, None, 10)
    assert await ledger.webhooks.take_webhooks(10, LEASE_S) == []
    resent = await ledger.webhooks.send_again(made.id, first.id)
    assert resent
    assert (resent.state, resent.by_hand) == (DeliveryState.WAITING, True)
    tested = await ledger.webhooks.send_test(made.id, "test_1")
    assert tested
    assert (tested.type, tested.cursor) == ("webhook.test", None)
    lease = await taken(ledger)
    assert await due(ledger, made.id) == ["evt_1", "test_1"], "and what waits for its turn is not, while disabled"
    assert await ledger.webhooks.held_subjects(made.id, {"order 1", "test"}) == {"order 1"}, "by what waits in turn"
    tried = [again(1, DeliveryState.FAILED), TriedDelivery(event_id="test_1", state=DeliveryState.DELIVERED, last=OK)]
    await note(ledger, lease, cursor=2, tried=tried, leave=True)
    assert await ledger.webhooks.take_webhooks(10, LEASE_S) == []
    await ledger.webhooks.change_webhook(made.id, WebhookChange(enabled=True))
    sooner = await ledger.webhooks.send_again(made.id, second.id)
    assert sooner
    assert (sooner.state, sooner.by_hand) == (DeliveryState.WAITING, False), "in its turn, but now"
    assert await due(ledger, made.id) == ["evt_2"]
    assert await ledger.webhooks.send_again(made.id, NONE) is None
    assert await ledger.webhooks.send_again(NONE, second.id) is None
    assert await ledger.webhooks.send_test(NONE, "test_2") is None


async def test_missed_events_are_on_record(ledger: SqlLedger) -> None:
    await make(ledger)
    await happen(ledger)
    noted = await note(ledger, await taken(ledger), cursor=40, missed=Missed(after=1, until=40))
    assert (noted.webhook.cursor, noted.webhook.missed_after, noted.webhook.missed_until) == (40, 1, 40)


async def test_deleted_it_leaves_nothing(ledger: SqlLedger) -> None:
    made = await make(ledger)
    await happen(ledger)
    lease = await taken(ledger)
    await note(ledger, lease, cursor=1, new=[waiting(1)])
    assert await ledger.webhooks.delete_webhook(made.id)
    assert not await ledger.webhooks.delete_webhook(made.id)
    assert await note(ledger, lease, cursor=2) is None
    assert await rows(ledger, select(webhook_deliveries)) == []


async def test_how_far_behind_the_last_one_is(ledger: SqlLedger) -> None:
    assert (await ledger.webhooks.webhook_lag()).age_ms == 0
    await make(ledger)
    idle = await make(ledger)
    assert (await ledger.webhooks.webhook_lag()).age_ms == 0
    await happen(ledger)
    await write(ledger, "UPDATE feed SET at_ms = at_ms - 60000")
    for lease in await ledger.webhooks.take_webhooks(10, LEASE_S):
        if lease.webhook.id != idle.id:
            await note(ledger, lease, cursor=2, failures=1, new=[waiting(1)])
    lag = await ledger.webhooks.webhook_lag()
    assert lag.age_ms >= 60_000
    assert (lag.waiting, lag.failing) == (1, 1)
    await ledger.webhooks.change_webhook(idle.id, WebhookChange(enabled=False))
    assert (await ledger.webhooks.webhook_lag()).age_ms == 0
