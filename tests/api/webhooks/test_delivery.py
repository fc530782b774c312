"""A shop's receiver gets each event once if nothing goes wrong, and those of an order in their order whatever does."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy import select, update
from standardwebhooks import WebhookVerificationError

from seckill.backends.sql.tables import feed, webhook_deliveries, webhooks
from seckill.bootstrap.engine import open_engine
from seckill.client import verify_webhook
from seckill.engine.webhooks import endpoint_delivery
from tests.api.conftest import make_node, settings_of_a_node
from tests.api.webhooks.conftest import Shop
from tests.backends.sql.looking import now_ms, rows, write
from tests.patience import PATIENCE_S
from tests.receiver import Received, Receiver, in_order, yes

DAY_MS = 86_400_000


@pytest.fixture(params=["sqlite", "postgres"])
async def shared(request: pytest.FixtureRequest, redis_url: str, receiver: Receiver) -> AsyncIterator[Shop]:
    """A ledger for several keepers. The ledger's own tests show what MariaDB does differently."""
    database: str = request.getfixturevalue(f"{request.param}_database")
    settings = replace(settings_of_a_node(redis_url, database), webhook_private="on")
    async with open_engine(settings, audits=False) as engine:
        node = await make_node(settings, engine)
        yield Shop(node, receiver, settings)
        await node.http.aclose()


async def test_an_event_arrives_signed_and_as_the_feed_has_it(shop: Shop) -> None:
    hook = await shop.hook(types=["order.*"], description="the shop")
    assert hook["secret"].startswith("whsec_")
    async with shop.keepers():
        await shop.orders(1)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 2)
    created, paid = shop.receiver.taken
    feed_has = {event["id"]: event for event in await shop.events(types="order.*")}
    for received in (created, paid):
        event = feed_has[received.id]
        assert received.event == {"type": event["type"], "timestamp": event["at"], "data": event["data"]}
        assert received.verified_with(hook["secret"]) == received.event
        assert verify_webhook(received.body, received.headers, hook["secret"]).data == event["data"]
    assert (created.event["type"], paid.event["type"]) == ("order.created", "order.paid")
    assert created.headers["host"] in shop.receiver.url()
    listed = (await shop.ask("GET"))["webhooks"]
    assert [(each["behind"], each["waiting"], each["failures"]) for each in listed] == [(0, 0, 0)]
    assert "secret" not in listed[0]
    assert hook["secret"] not in json.dumps(listed), "shown once"
    newest, oldest = await shop.deliveries(hook["id"])
    assert (newest["type"], newest["state"], newest["status"], newest["tries"]) == ("order.paid", "delivered", 200, 1)
    assert oldest["event_id"] == created.id


async def test_three_keepers_send_everything_once(shared: Shop) -> None:
    """They do so even if one of them is stopped in the middle of it."""
    for path in ("/one", "/two"):
        await shared.hook(path)
    before = len(await shared.events())
    async with shared.keepers(3) as stops:
        await shared.orders(40)
        await shared.receiver.until(lambda: len(shared.receiver.taken) > 20)
        stops[0].set()
        await shared.orders(40)
        wanted = 2 * (len(await shared.events()) - before)
        await shared.receiver.until(lambda: len(shared.receiver.times()) == wanted)
    assert wanted > 2 * 3 * 80
    assert set(shared.receiver.times().values()) == {1}
    assert in_order(shared.receiver.at("/one"), await shared.cursors())


async def test_an_order_is_told_in_its_order_whatever_fails(shop: Shop) -> None:
    await shop.hook(types=["order.*", "payment.*"])
    chance = random.Random(7)

    async def moody(_: Received) -> int:
        await asyncio.sleep(chance.random() * 0.01)
        return 200 if chance.random() < 0.6 else 503

    shop.receiver.answer = moody
    async with shop.keepers(2):
        await shop.orders(25)
        wanted = {event["id"] for event in await shop.events(types="order.*,payment.*")}
        await shop.receiver.until(lambda: {each.id for each in shop.receiver.taken} == wanted)
    cursors = await shop.cursors()
    assert len(shop.receiver.got) > len(wanted), "some have failed"
    assert in_order(shop.receiver.taken, cursors)
    # Nor was a later one even tried before the earlier ones had arrived.
    taken: set[str] = set()
    of_order: dict[str, list[str]] = {}
    for event_id in sorted(wanted, key=lambda each: cursors[each]):
        [order] = {each.order for each in shop.receiver.got if each.id == event_id}
        assert order is not None
        of_order.setdefault(order, []).append(event_id)
    answered = {id(each) for each in shop.receiver.taken}
    for each in shop.receiver.got:
        assert each.order is not None
        earlier = of_order[each.order][: of_order[each.order].index(each.id)]
        assert set(earlier) <= taken
        if id(each) in answered:
            taken.add(each.id)


async def test_a_slow_endpoint_holds_up_nobody_and_a_slow_order_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_delivery, "SLOW_S", 0.05)
    monkeypatch.setattr(endpoint_delivery, "WINDOW", 64)  # so that what comes after a slow one does not fit in
    monkeypatch.setattr(endpoint_delivery, "PAGE", 32)
    await shop.hook("/dead", types=["order.*"])
    await shop.hook("/good", types=["order.*"])
    released = asyncio.Event()
    stuck: list[str | None] = []

    async def answer(received: Received) -> int:
        if not stuck and received.path == "/good":
            stuck.append(received.order)
        if received.path == "/dead" or received.order in stuck:
            await released.wait()
        return 200

    shop.receiver.answer = answer
    async with shop.keepers():
        await shop.orders(100)
        wanted = {event["id"] for event in await shop.events(types="order.*") if event["data"]["order_id"] not in stuck}
        await shop.receiver.until(lambda: len(shop.receiver.at("/good")) == 198)
        assert {each.id for each in shop.receiver.at("/good")} <= wanted
        assert shop.receiver.at("/dead") == []
        assert len([each for each in shop.receiver.got if each.order == stuck[0] and each.path == "/good"]) == 1
        released.set()
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 2 * 200)
    assert set(shop.receiver.times().values()) == {1}, "what was slow arrived, and was not sent again"
    assert in_order(shop.receiver.at("/good"), await shop.cursors())


async def test_one_that_fails_is_left_alone_and_gets_everything_later(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"])
    is_up = False

    async def answer(_: Received) -> int:
        return 200 if is_up else 500

    shop.receiver.answer = answer
    async with shop.keepers():
        await shop.orders(200, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.got) > 30)
        found = await shop.ask("GET", f"/{hook['id']}")
        assert found["failing_since"]
        assert found["waiting"] < 40, "it is asked now and then, and no row is made of each event"
        is_up = True
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 200)
    assert set(shop.receiver.times().values()) == {1}
    assert (await shop.ask("GET", f"/{hook['id']}"))["failing_since"] is None


async def test_after_days_it_is_disabled_with_an_alarm_and_goes_on_when_it_is_enabled(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"])
    status = 500

    async def answer(_: Received) -> int:
        return status

    shop.receiver.answer = answer
    async with shop.keepers():
        await shop.orders(30, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.got) > 20)
        # Three days pass.
        await write(shop.ledger, update(webhooks).values(failing_ms=webhooks.c.failing_ms - 3 * DAY_MS))
        await until_disabled(shop, hook["id"])
        assert [what for what, _ in shop.alarm.raised] == [
            "a webhook was disabled, and gets no more events until it is enabled"
        ]
        assert shop.alarm.raised[0][1]["reason"] == "failing"
        await shop.orders(5, paid=False)
        status = 200
        await shop.ask("PATCH", f"/{hook['id']}", enabled=True)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 35)
    assert set(shop.receiver.times().values()) == {1}


async def until_disabled(shop: Shop, webhook_id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await shop.ask("GET", f"/{webhook_id}"))["enabled"]:
            await asyncio.sleep(0.02)


async def test_one_that_says_it_is_gone_is_disabled_at_once(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"])

    async def answer(_: Received) -> int:
        return 410

    shop.receiver.answer = answer
    async with shop.keepers():
        await shop.orders(1, paid=False)
        await until_disabled(shop, hook["id"])
    assert (await shop.ask("GET", f"/{hook['id']}"))["disabled_by"] == "gone"
    assert len(shop.alarm.raised) == 1


async def test_events_that_were_pruned_before_they_were_sent_are_told_of(shop: Shop) -> None:
    hook = await shop.hook()
    await shop.orders(3, paid=False)
    old = (await shop.events())[-1]["cursor"]
    await shop.orders(1)
    await shop.events()
    await write(shop.ledger, update(feed).where(feed.c.first_cursor <= old).values(at_ms=1))
    assert await shop.ledger.feed.prune(DAY_MS, 100)
    left = await shop.events()
    assert left[0]["cursor"] == old + 1
    async with shop.keepers():
        await shop.receiver.until(lambda: len(shop.receiver.taken) == len(left))
    assert {each.id for each in shop.receiver.taken} == {event["id"] for event in left}
    [(what, facts)] = shop.alarm.raised
    assert what == "events were pruned before they were sent to a webhook"
    assert facts["until"] == left[0]["cursor"] - 1
    missed = (await shop.ask("GET", f"/{hook['id']}"))["missed"]
    assert (missed["after"], missed["until"]) == (facts["after"], facts["until"])


async def test_a_delivery_whose_event_is_gone_is_given_up(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"])
    shop.receiver.answer = never
    async with shop.keepers():
        await shop.orders(1, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.got) > 0)
    await write(shop.ledger, update(feed).values(at_ms=1))
    await shop.ledger.feed.prune(DAY_MS, 1000)
    async with shop.keepers():
        await until_state(shop, hook["id"], "failed")
    [delivery] = await shop.deliveries(hook["id"])
    assert delivery["trouble"] == "event_gone"


async def never(_: Received) -> int:
    return 500


async def until_state(shop: Shop, webhook_id: str, state: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while {each["state"] for each in await shop.deliveries(webhook_id)} != {state}:
            await asyncio.sleep(0.02)


async def test_both_secrets_sign_while_they_overlap(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"])
    rotated = await shop.ask("POST", f"/{hook['id']}/rotate", overlap_hours=1)
    assert rotated["secret"] != hook["secret"]
    async with shop.keepers():
        await shop.orders(1, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 1)
        [received] = shop.receiver.taken
        for secret in (hook["secret"], rotated["secret"]):
            received.verified_with(secret)
            verify_webhook(received.body, received.headers, ["whsec_" + "A" * 32, secret])
    await write(shop.ledger, update(webhooks).values(old_secret_ms=await now_ms(shop.ledger)))
    async with shop.keepers():
        await shop.orders(1, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 2)
    assert len(shop.receiver.taken[1].headers["webhook-signature"].split(" ")) == 1
    shop.receiver.taken[1].verified_with(rotated["secret"])


@pytest.mark.parametrize("overlap_hours", [1, 0])
async def test_a_secret_is_replaced_under_load(shop: Shop, overlap_hours: int) -> None:
    """Orders flow, two keepers send, and the receiver gets the new secret a while after the keepers. Without an overlap
    it has to refuse what comes in between."""
    hook = await shop.hook(types=["order.created"])
    known, refused, sold_out = hook["secret"], 0, False

    async def answer(received: Received) -> int:
        nonlocal refused
        try:
            received.verified_with(known)
        except WebhookVerificationError:
            refused += 1
            return 401
        return 200

    async def sell() -> None:
        while not sold_out:
            if shop.ordered - len(shop.receiver.taken) < 40:  # otherwise it is they who have to catch up
                await shop.orders(5, paid=False)
            await asyncio.sleep(0.01)

    async def until_more_are_taken() -> None:
        enough = len(shop.receiver.taken) + 20
        await shop.receiver.until(lambda: len(shop.receiver.taken) >= enough or refused > 0)

    shop.receiver.answer = answer
    async with shop.keepers(2), asyncio.TaskGroup() as tasks:
        selling = tasks.create_task(sell())
        await until_more_are_taken()
        rotated = await shop.ask("POST", f"/{hook['id']}/rotate", overlap_hours=overlap_hours)
        await until_more_are_taken()
        known = rotated["secret"]
        await until_more_are_taken()
        sold_out = True
        await selling
        await shop.receiver.until(lambda: len({each.id for each in shop.receiver.taken}) == shop.ordered)
    assert (refused > 0) == (overlap_hours == 0)


async def test_what_comes_after_a_rotation_is_signed_with_the_new_secret(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keeper that is at the endpoint all the time does so, too, though it hears of nothing when it renews its
    lease."""
    monkeypatch.setattr(endpoint_delivery, "LINGER_S", PATIENCE_S)
    monkeypatch.setattr(endpoint_delivery, "RENEW_EVERY_S", PATIENCE_S)
    hook = await shop.hook(types=["order.created"])
    async with shop.keepers():
        await shop.ask("POST", f"/{hook['id']}/test?wait=30")
        rotated = await shop.ask("POST", f"/{hook['id']}/rotate", overlap_hours=1)
        await shop.ask("POST", f"/{hook['id']}/test?wait=30")
        for secret in (hook["secret"], rotated["secret"]):
            shop.receiver.taken[1].verified_with(secret)
        last = await shop.ask("POST", f"/{hook['id']}/rotate", overlap_hours=1)
        await shop.orders(1, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 3)
        for secret in (rotated["secret"], last["secret"]):
            shop.receiver.taken[2].verified_with(secret)


async def test_operators_test_and_redeliver_by_hand(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"], enabled=False)
    async with shop.keepers():
        tested = await shop.ask("POST", f"/{hook['id']}/test?wait=30")
        assert (tested["state"], tested["status"], tested["type"]) == ("delivered", 200, "webhook.test")
        assert shop.receiver.taken[0].event["data"] == {"webhook_id": hook["id"]}
        shop.receiver.taken[0].verified_with(hook["secret"])
        await shop.ask("PATCH", f"/{hook['id']}", enabled=True)
        await shop.orders(1, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 2)
    delivery, _ = await shop.deliveries(hook["id"])
    shop.receiver.answer = never
    async with shop.keepers():
        again = await shop.ask("POST", f"/{hook['id']}/deliveries/{delivery['id']}/redeliver?wait=30")
        assert (again["state"], again["status"], again["tries"]) == ("failed", 500, 2), "once, as it was asked for"
        assert (await shop.ask("GET", f"/{hook['id']}"))["failing_since"] is None
        shop.receiver.answer = yes
        again = await shop.ask("POST", f"/{hook['id']}/deliveries/{delivery['id']}/redeliver?wait=30")
        assert (again["state"], again["tries"]) == ("delivered", 3)
    assert [each.id for each in shop.receiver.got[1:]] == [delivery["event_id"]] * 3


async def test_a_keeper_that_stops_leaves_to_the_next_what_has_not_arrived(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them: its cursor never passes over something that is neither delivered nor put down."""
    monkeypatch.setattr(endpoint_delivery, "LAST_WORDS_S", 0.05)
    hook = await shop.hook(types=["order.created"])
    released = asyncio.Event()
    answered = 0

    async def answer(_: Received) -> int:
        nonlocal answered
        answered += 1
        if not 3 < answered <= 10:  # what arrives has something before it, and something after it, that does not
            await released.wait()
        return 200

    shop.receiver.answer = answer
    async with shop.keepers():
        await shop.orders(40, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 7)
    arrived = {each.id for each in shop.receiver.taken}
    left = await shop.ask("GET", f"/{hook['id']}")
    assert left["behind"] + left["waiting"] >= 40 - len(arrived)
    shop.receiver.answer = yes
    async with shop.keepers():
        await shop.receiver.until(lambda: len(shop.receiver.times()) == 40)
    released.set()
    assert all(times == 1 for (_, event_id), times in shop.receiver.times().items() if event_id in arrived)


async def test_what_a_keeper_did_not_note_is_sent_again_by_the_next(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keeper that stops between sending and noting, and whose lease ends."""
    await shop.hook(types=["order.created"])
    monkeypatch.setattr(endpoint_delivery.Sitting, "_note", lost)
    async with shop.keepers():
        await shop.orders(1, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 1)
    monkeypatch.undo()
    await write(shop.ledger, update(webhooks).values(lease_ms=1))
    async with shop.keepers():
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 2)
    assert len(shop.receiver.times()) == 1


async def lost(*_: object, **__: object) -> None:
    raise RuntimeError("killed here")


async def test_a_private_address_gets_nothing_where_it_is_not_allowed(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"])
    async with shop.keepers(settings=replace(shop.settings, webhook_private="off")):
        await shop.orders(1, paid=False)
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await shop.deliveries(hook["id"])):
                await asyncio.sleep(0.02)
    assert (found[0]["status"], found[0]["trouble"]) == (None, "not_allowed")
    assert shop.receiver.connections == 0


async def until_heard(shop: Shop) -> None:
    """A keeper that is at work at an endpoint hears of a change within a second, and what happens until then is sent as
    it was before. The next keeper that takes it has read it anew."""
    lease = select(webhooks.c.lease)
    [(now_at_work,)] = await rows(shop.ledger, lease)
    async with asyncio.timeout(PATIENCE_S):
        while now_at_work is not None and await rows(shop.ledger, lease) == [(now_at_work,)]:
            await asyncio.sleep(0.02)


async def test_a_change_of_its_address_is_followed(shop: Shop) -> None:
    hook = await shop.hook("/old", types=["order.created"])
    async with shop.keepers():
        await shop.orders(1, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.at("/old")) == 1)
        await shop.ask("PATCH", f"/{hook['id']}", url=shop.receiver.url("/new"), types=["order.paid"])
        await until_heard(shop)
        await shop.orders(1)
        await shop.receiver.until(lambda: len(shop.receiver.at("/new")) == 1)
    assert shop.receiver.at("/new")[0].event["type"] == "order.paid"


async def test_what_arrives_at_once_leaves_no_row_but_of_the_last_ones(shop: Shop) -> None:
    hook = await shop.hook(types=["order.created"])
    async with shop.keepers():
        await shop.orders(250, paid=False)
        await shop.receiver.until(lambda: len(shop.receiver.taken) == 250)
    assert len(await shop.deliveries(hook["id"])) == 100
    assert len(await rows(shop.ledger, select(webhook_deliveries.c.id))) == 100
    assert set(shop.receiver.times().values()) == {1}
