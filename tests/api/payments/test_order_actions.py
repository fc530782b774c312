"""Operators cancel and refund over HTTP: the money, the units, what buyers see, and what is refused."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.money.refunds import REFUSED_RETRY_S, RefundDesk
from seckill.errors import ProviderUnavailable, RefundRefused
from seckill.ports.payment import Refund
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, buyer, make_node
from tests.api.payments.conftest import PRICE, Shop
from tests.backends.sql.looking import write

Reply = dict[str, Any]


async def cancel(shop: Shop, order_id: str, key: str | None = None, **body: Any) -> httpx2.Response:
    return await act(shop, order_id, "cancel", key, {"reason": "sold by mistake"} | body)


async def refund(shop: Shop, order_id: str, key: str | None = None, **body: Any) -> httpx2.Response:
    return await act(shop, order_id, "refund", key, {"reason": "lost in the post", "return_unit": True} | body)


async def act(shop: Shop, order_id: str, verb: str, key: str | None, body: object) -> httpx2.Response:
    headers = OPERATOR | ({} if key is None else {"Idempotency-Key": key})
    return await shop.node.http.post(f"/v1/admin/orders/{order_id}/{verb}", json=body, headers=headers)


async def paid_order(shop: Shop, sale: Reply, user: str = "ann", **body: Any) -> str:
    order_id = await shop.order(sale, user, **body)
    price = PRICE * body.get("quantity", 1)
    assert (await shop.notify(order_id, f"pay-{order_id}", amount_cents=price)).json()["state"] == "paid"
    return order_id


async def custody(shop: Shop, sale: Reply) -> Reply:
    await shop.release_desk.pass_on()
    found: Reply = (await shop.node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
    places = ("available", "queued", "unpaid", "paid", "kept", "returning", "dead")
    assert found["total"] == sum(found[place] for place in places)
    return found


async def history(shop: Shop, order_id: str) -> Reply:
    answer = await shop.node.http.get(f"/v1/admin/orders?order_id={order_id}", headers=OPERATOR)
    (found,) = answer.json()["orders"]
    return dict(found)


class Provider:
    """Does as it is told, and remembers what it was asked for."""

    name = "sandbox"
    sandbox = True

    def __init__(self, *answers: Callable[[], bool]) -> None:
        self.asked: list[Refund] = []
        self._answers = list(answers)

    def read(self, *_: object) -> Any:
        raise AssertionError

    async def refund(self, refund: Refund, order_id: str) -> bool:
        self.asked.append(refund)
        return self._answers.pop(0)() if self._answers else True


class Alarms(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.raised: list[dict[str, object]] = []

    async def raise_(self, what: str, facts: Any, *, lasting: bool = False) -> None:
        self.raised.append({"alarm": what, **facts})


def desk(shop: Shop, provider: Provider, alarm: Alarm | None = None) -> RefundDesk:
    return RefundDesk(shop.ledger.payments, provider, shop.engine.order_ids, alarm or Alarms())


async def test_a_cancelled_order_gives_its_unit_back_and_its_buyer_is_told(shop: Shop) -> None:
    sale = await shop.node.create(units=1, cool_down_s=600)
    order_id = await shop.order(sale)
    waiting = asyncio.create_task(
        shop.node.http.get(f"/v1/orders/{order_id}?wait=20&seen=unpaid", headers=buyer("ann"))
    )
    answer = await cancel(shop, order_id)
    assert (answer.status_code, answer.json()["state"], answer.json()["closed_by"]) == (200, "cancelled", "operator")
    assert (await custody(shop, sale))["available"] == 1
    await shop.node.api.context.orders.look_up_waiting()
    assert (await waiting).json()["state"] == "cancelled"
    await shop.node.refresh()
    assert (await shop.node.buy(sale, "ann")).status_code == 202, "she let nothing lapse"
    await shop.node.work()
    found = await history(shop, order_id)
    assert [(action["action"], action["reason"]) for action in found["actions"]] == [("cancel", "sold by mistake")]
    await shop.check()


async def test_money_for_what_an_operator_has_cancelled_goes_back(shop: Shop) -> None:
    """The money goes back even if units are left: the operator wants no order of this."""
    sale = await shop.node.create(units=3)
    order_id = await shop.order(sale)
    await cancel(shop, order_id)
    answer = await shop.notify(order_id)
    assert (answer.status_code, answer.json()["state"], answer.json()["replaced_by"]) == (200, "refunded", None)
    (made,) = await shop.refunds.newest(10)
    assert (made.reason, made.amount_cents) == ("cancelled_by_operator", PRICE)
    await shop.check()


@pytest.mark.parametrize("return_unit", [True, False])
async def test_a_refund_in_full(shop: Shop, return_unit: bool) -> None:
    sale = await shop.node.create(units=2)
    order_id = await paid_order(shop, sale)
    answer = await refund(shop, order_id, return_unit=return_unit)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert (shown["state"], shown["refunded_cents"], shown["closed_by"]) == ("refunded", PRICE, "operator")
    assert shown == {**await shop.show(order_id), "buyer": "ann"}
    places = await custody(shop, sale)
    assert (places["available"], places["kept"], places["sold"]) == ((2, 0, 0) if return_unit else (1, 1, 1))
    await shop.node.refresh()
    again = await shop.node.buy(sale, "ann")
    # A unit that stays sold goes on counting towards the limit.
    assert again.status_code == (202 if return_unit else 409)
    provider = Provider()
    await desk(shop, provider).make_due()
    (asked,) = provider.asked
    assert (asked.amount_cents, asked.capture.amount_cents, asked.explanation) == (PRICE, PRICE, "lost in the post")
    assert (await refund(shop, order_id)).json()["code"] == "wrong_state"
    found = await history(shop, order_id)
    (payment,) = found["payments"]
    assert payment["refunds"] == [payment["refund"]]
    assert payment["pays"] == order_id
    await shop.node.work()
    await shop.check()


async def test_refunds_in_parts_until_nothing_is_left(shop: Shop) -> None:
    sale = await shop.node.create(units=5, limit_per_buyer=2)
    order_id = await paid_order(shop, sale, quantity=2)
    first = await refund(shop, order_id, amount_cents=5000, return_unit=False)
    assert (first.json()["state"], first.json()["refunded_cents"]) == ("paid", 5000)
    assert (await custody(shop, sale))["paid"] == 2
    too_much = await refund(shop, order_id, amount_cents=2 * PRICE - 4999)
    assert (too_much.status_code, too_much.json()["code"]) == (409, "too_much")
    assert (too_much.json()["left_cents"], too_much.json()["state"]) == (2 * PRICE - 5000, "paid")
    assert "148.00 CNY" in too_much.json()["detail"]
    # The goods came back, and a part of the price is kept.
    second = await refund(shop, order_id, amount_cents=10000, return_unit=True)
    assert (second.json()["state"], second.json()["refunded_cents"]) == ("paid", 15000)
    assert (await custody(shop, sale))["available"] == 5
    last = await refund(shop, order_id, return_unit=True)
    assert (last.json()["state"], last.json()["refunded_cents"]) == ("refunded", 2 * PRICE)
    assert (await custody(shop, sale))["available"] == 5, "units come back once"
    provider = Provider()
    await desk(shop, provider).make_due()
    assert [asked.amount_cents for asked in provider.asked] == [5000, 10000, 4800]
    assert len({asked.id for asked in provider.asked}) == 3
    assert {(asked.capture.ref, asked.capture.amount_cents) for asked in provider.asked} == {
        (f"pay-{order_id}", 2 * PRICE)
    }
    await shop.check()


async def test_the_same_key_refunds_once(shop: Shop) -> None:
    order_id = await paid_order(shop, await shop.node.create())
    for _ in range(3):
        answer = await refund(shop, order_id, "k1", amount_cents=100)
        assert (answer.status_code, answer.json()["refunded_cents"]) == (200, 100)
    at_once = await asyncio.gather(*(refund(shop, order_id, "k2", amount_cents=100) for _ in range(8)))
    assert {(answer.status_code, answer.json()["refunded_cents"]) for answer in at_once} == {(200, 200)}
    other = await refund(shop, order_id, "k1", amount_cents=101)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert (await refund(shop, order_id, amount_cents=100)).json()["refunded_cents"] == 300, "without a key, another"
    assert len(await shop.refunds.newest(10)) == 3
    unpaid = await shop.order(await shop.node.create(), "bob")
    for _ in range(2):
        assert (await cancel(shop, unpaid, "k3")).status_code == 200
    assert (await cancel(shop, unpaid, "k4")).json()["code"] == "wrong_state"
    assert (await cancel(shop, unpaid, "x" * 256)).json()["errors"][0]["field"] == "Idempotency-Key"
    await shop.check()


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("cancel", {}, "reason"),
        ("cancel", {"reason": ""}, "reason"),
        ("cancel", {"reason": "  "}, "reason"),
        ("cancel", {"reason": "a\0b"}, "reason"),
        ("cancel", {"reason": "x" * 256}, "reason"),
        ("cancel", {"reason": 7}, "reason"),
        ("cancel", {"reason": "r", "amount_cents": 1}, "amount_cents"),
        ("refund", {"return_unit": True}, "reason"),
        ("refund", {"reason": "r"}, "return_unit"),
        ("refund", {"reason": "r", "return_unit": 1}, "return_unit"),
        ("refund", {"reason": "r", "return_unit": True, "amount_cents": 0}, "amount_cents"),
        ("refund", {"reason": "r", "return_unit": True, "amount_cents": -1}, "amount_cents"),
        ("refund", {"reason": "r", "return_unit": True, "amount_cents": 1.5}, "amount_cents"),
        ("refund", {"reason": "r", "return_unit": True, "amount_cents": True}, "amount_cents"),
        ("refund", {"reason": "r", "return_unit": True, "amount_cents": "9900"}, "amount_cents"),
        ("refund", {"reason": "r", "return_unit": True, "amount_cents": 10**15 + 1}, "amount_cents"),
        ("refund", {"reason": "r", "return_unit": True, "amount_cents": 10**30}, "amount_cents"),
        ("refund", {"reason": "r", "return_unit": True, "note": "x"}, "note"),
    ],
)
async def test_what_makes_no_sense_names_the_field(shop: Shop, verb: str, body: Reply, field: str) -> None:
    order_id = await paid_order(shop, await shop.node.create())
    before = await shop.everything()
    answer = await act(shop, order_id, verb, None, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text
    assert answer.json()["errors"][0]["field"] == field
    assert await shop.everything() == before


async def test_what_is_not_there_not_allowed_or_in_another_state(shop: Shop) -> None:
    sale = await shop.node.create(units=5)
    unpaid, paid = await shop.order(sale, "ann"), await paid_order(shop, sale, "bob")
    queued = (await shop.node.buy(sale, "cid")).json()["order_id"]
    before = await shop.everything()
    for doing in (cancel, refund):
        for unknown in ("nonsense", "0000000000000", "*"):
            assert (await doing(shop, unknown)).status_code == 404
        waits = await doing(shop, queued)
        assert (waits.status_code, waits.json()["code"], waits.json()["state"]) == (409, "still_queued", "queued")
    for answer, state in ((await cancel(shop, paid), "paid"), (await refund(shop, unpaid), "unpaid")):
        assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "wrong_state", state)
    for verb in ("cancel", "refund"):
        address = f"/v1/admin/orders/{paid}/{verb}"
        body = {"reason": "r", "return_unit": True}
        assert (await shop.node.http.post(address, json=body, headers=buyer("bob"))).status_code == 403
        assert (await shop.node.http.post(address, json=body)).status_code == 401
    assert await shop.everything() == before


async def test_a_free_order_is_taken_back_without_asking_the_provider(shop: Shop) -> None:
    sale = await shop.node.create(units=1, price_cents=0)
    order_id = await shop.order(sale)
    assert (await refund(shop, order_id, amount_cents=1)).json()["left_cents"] == 0
    assert (await refund(shop, order_id)).json()["state"] == "refunded"
    assert (await custody(shop, sale))["available"] == 1
    assert list(await shop.refunds.newest(10)) == []
    await shop.check()


def away() -> bool:
    raise ProviderUnavailable("away")


def never() -> bool:
    raise RefundRefused("The card no longer exists.")


async def test_the_provider_is_asked_until_it_is_done_with_the_same_id(shop: Shop) -> None:
    order_id = await paid_order(shop, await shop.node.create())
    await refund(shop, order_id, amount_cents=100)
    provider = Provider(away, away)
    for _ in range(4):
        await write(shop.ledger, "UPDATE refunds SET next_ms = 1 WHERE next_ms IS NOT NULL")
        # Another keeper each time, as after a kill: only the ledger remembers.
        await desk(shop, provider).make_due()
    assert [asked.attempts for asked in provider.asked] == [1, 2, 3], "and not once it is done"
    assert len({asked.id for asked in provider.asked}) == 1


async def test_a_provider_that_says_no_for_good_is_an_alarm_and_is_shown(shop: Shop) -> None:
    order_id = await paid_order(shop, await shop.node.create())
    await refund(shop, order_id)
    provider, alarm = Provider(never, never), Alarms()
    await desk(shop, provider, alarm).make_due()
    assert [(each["order"], each["amount"], each["reason"]) for each in alarm.raised] == [
        (order_id, "99.00 CNY", "The card no longer exists.")
    ]
    (shown,) = (await shop.node.http.get("/v1/admin/refunds", headers=OPERATOR)).json()["refunds"]
    assert (shown["refused"], shown["done_at"]) == ("The card no longer exists.", None)
    assert (await desk(shop, provider, alarm).make_due()) == 0, f"not again for {REFUSED_RETRY_S} s"
    await write(shop.ledger, "UPDATE refunds SET next_ms = 1")
    await desk(shop, provider, alarm).make_due()
    assert len(alarm.raised) == 1, "people know"
    await write(shop.ledger, "UPDATE refunds SET next_ms = 1")
    await desk(shop, provider, alarm).make_due()
    (shown,) = (await shop.node.http.get("/v1/admin/refunds", headers=OPERATOR)).json()["refunds"]
    assert (shown["refused"], shown["done_at"] is not None) == (None, True)


async def test_a_unit_of_a_round_that_is_retired_does_not_come_back_to_the_gate(shop: Shop) -> None:
    sale = await shop.node.create(units=2)
    order_id = await paid_order(shop, sale)
    await shop.release_desk.pass_on()
    await write(shop.ledger, "UPDATE rounds SET retired_ms = 1")
    assert (await refund(shop, order_id)).json()["state"] == "refunded"
    await shop.release_desk.pass_on()
    assert await shop.ledger.outbox(10) == []
    (found,) = await shop.ledger.sales()
    view = await shop.engine.gate.inspect(found.round.ref)
    assert view is not None
    assert (view.released, view.available) == (0, 1), "the sale is long over"


async def test_a_stream_that_was_at_paid_tells_of_a_refund_when_it_comes_back(shop: Shop) -> None:
    order_id = await paid_order(shop, await shop.node.create())
    address = f"/v1/orders/{order_id}/events"

    async def told(seen: str) -> httpx2.Response:
        return await shop.node.http.get(address, headers=buyer("ann") | {"Last-Event-ID": seen})

    assert (await told("paid")).status_code == 204
    await refund(shop, order_id, amount_cents=100)
    part = await told("paid")
    assert "id: paid-100\n" in part.text
    assert '"refunded_cents":100' in part.text
    assert (await told("paid-100")).status_code == 204
    await refund(shop, order_id)
    assert f"id: refunded-{PRICE}\n" in (await told("paid-100")).text


async def test_the_audit_finds_everything_in_order(settings: Settings, engine: Engine) -> None:
    """The audit runs after all of it, with units that stay sold and units that came back."""
    node = await make_node(settings, engine)
    use = UseCases(engine, settings)
    shop = Shop(node, engine, use.release_desk, use.payments, use.refunds)
    sale = await node.create(units=9, limit_per_buyer=2)
    wishes: list[Reply] = [{"return_unit": False}, {}, {"amount_cents": 10}, {"amount_cents": 10, "return_unit": False}]
    for i, wish in enumerate(wishes):
        await refund(shop, await paid_order(shop, sale, f"u{i}", quantity=2), **wish)
    await cancel(shop, await shop.order(sale, "ann"))
    auditor = node.api.context.auditor
    assert auditor is not None
    for _ in range(2):
        report = await auditor.read(full=True)
        assert report.findings == []
        await shop.release_desk.pass_on()
    await node.http.aclose()
