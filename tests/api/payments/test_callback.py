"""Payment callbacks: who may send one, what it must say, and that nothing else changes anything."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import msgspec
import structlog
from prometheus_client import REGISTRY

from seckill.backends.payment.callback_signature import AGE_S_MAX, signature
from seckill.bootstrap.engine import Engine, open_engine
from seckill.domain.order_number import OrderNumber
from seckill.settings import Secret, Settings
from tests.api.conftest import OPERATOR, make_node
from tests.api.payments.conftest import CALLBACK, PAYMENT_SECRET, PRICE, Shop, message


async def test_a_callback_pays_and_a_repeat_gets_the_same_answer(shop: Shop) -> None:
    order_id = await shop.order(await shop.node.create())
    paid = await shop.notify(order_id)
    assert (paid.status_code, paid.json()["state"], paid.json()["order_id"]) == (200, "paid", order_id)
    before = await shop.everything()
    again = await shop.notify(order_id)
    assert (again.status_code, again.json()) == (200, paid.json())
    assert await shop.everything() == before
    assert await shop.show(order_id) == paid.json()
    await shop.check()


async def test_twice_in_parallel_on_two_nodes(shop: Shop, settings: Settings, engine: Engine) -> None:
    async with open_engine(settings) as other_engine:
        other = replace(shop, node=await make_node(settings, other_engine))
        order_id = await shop.order(await shop.node.create())
        answers = await asyncio.gather(*((shop, other)[i % 2].notify(order_id) for i in range(10)))
        assert {(answer.status_code, answer.content) for answer in answers} == {(200, answers[0].content)}
        await other.node.http.aclose()
    await shop.check()


async def test_a_callback_that_is_not_genuine(shop: Shop) -> None:
    """401, nothing read further, nothing changed (S26)."""
    order_id = await shop.order(await shop.node.create())
    before = await shop.everything()
    now, forged = int(time.time()), ",v1=" + "0" * 64
    for header in (
        None,
        "",
        "garbage",
        f"t=now{forged}",
        f"t=-1{forged}",
        f"t={now}",
        f"t={now},v1=",
        f"t={now}{forged}",
        f"t={now},v0={'0' * 64}",
        f"t={now}{forged * 50}",
    ):
        for body in (msgspec.json.encode(message(order_id)), b"{not even JSON"):
            refused = await shop.send(body, header)
            assert (refused.status_code, refused.json()["code"]) == (401, "not_genuine"), header
    assert await shop.everything() == before


async def test_signatures_of_others_of_other_bodies_and_of_other_times(shop: Shop) -> None:
    order_id = await shop.order(await shop.node.create())
    body = msgspec.json.encode(message(order_id))
    now = int(time.time())
    good = signature(PAYMENT_SECRET, body, now)
    before = await shop.everything()
    stranger = signature(Secret("somebody-elses-key-of-32-bytes-or-more"), body, now)
    for sent, header in [
        (body, stranger),
        (body + b" ", good),
        (msgspec.json.encode(message(order_id, amount_cents=1)), good),
        (body, good.replace(f"t={now}", f"t={now + 1}")),
        (body, signature(PAYMENT_SECRET, body, now - AGE_S_MAX - 5)),
        (body, signature(PAYMENT_SECRET, body, now + AGE_S_MAX + 60)),
    ]:
        refused = await shop.send(sent, header)
        assert (refused.status_code, refused.json()["code"]) == (401, "not_genuine"), header
    assert await shop.everything() == before
    both = f"{stranger},{good.partition(',')[2]}"
    assert (await shop.send(body, both)).status_code == 200, "signed with the old and the new secret"


async def test_a_callback_at_the_edge_of_its_time_is_good(shop: Shop) -> None:
    order_id = await shop.order(await shop.node.create())
    body = msgspec.json.encode(message(order_id))
    header = signature(PAYMENT_SECRET, body, int(time.time()) - AGE_S_MAX + 60)
    assert (await shop.send(body, header)).status_code == 200
    assert (await shop.send(body, header)).status_code == 200, "caught and sent again: the same answer, no more"
    await shop.check()


NONSENSE: list[dict[str, Any]] = [
    {"amount_cents": 0},
    {"amount_cents": -PRICE},
    {"amount_cents": 99.5},
    {"amount_cents": str(PRICE)},
    {"amount_cents": True},
    {"amount_cents": 1 << 63},
    {"amount_cents": None},
    {"currency": "cny"},
    {"currency": "CNYX"},
    {"currency": "CNY\n"},
    {"currency": None},
    {"payment_id": ""},
    {"payment_id": "x" * 129},
    {"payment_id": "*ABC"},
    {"payment_id": "a b"},
    {"payment_id": "pay-2\n"},
    {"payment_id": "a\0b"},
    {"payment_id": 7},
    {"order_id": 7},
    {"tip_cents": 5},
]


async def test_a_genuine_callback_that_makes_no_sense(shop: Shop) -> None:
    order_id = await shop.order(await shop.node.create())
    before = await shop.everything()
    for changes in NONSENSE:
        refused = await shop.notify(order_id, **changes)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), changes
        assert refused.json()["errors"][0]["field"] == next(iter(changes))
    for body in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 40_000):
        refused = await shop.send(body, signature(PAYMENT_SECRET, body, int(time.time())))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), body
    assert await shop.everything() == before


async def test_a_large_callback_is_refused_before_its_signature(shop: Shop) -> None:
    body = b" " * 70_000
    refused = await shop.send(body, signature(PAYMENT_SECRET, body, int(time.time())))
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")


async def test_wrong_amounts_reused_ids_and_unknown_orders_change_nothing(shop: Shop) -> None:
    sale = await shop.node.create(limit_per_buyer=2)
    first, second = [await shop.order(sale) for _ in range(2)]
    assert (await shop.notify(first)).status_code == 200
    before = await shop.everything()
    cases: list[tuple[str, dict[str, Any], tuple[int, str]]] = [
        (second, {"amount_cents": PRICE - 1}, (409, "wrong_amount")),
        (second, {"amount_cents": PRICE + 1}, (409, "wrong_amount")),
        (second, {"currency": "EUR"}, (409, "wrong_amount")),
        (first, {"amount_cents": PRICE - 1}, (409, "wrong_amount")),
        (second, {"payment_id": "pay-1"}, (409, "payment_id_reused")),
        ("0123456789ABC", {}, (404, "not_found")),
        ("x", {}, (404, "not_found")),
        ("x" * 5000, {}, (404, "not_found")),
        (shop.engine.order_ids.encode(12345), {}, (404, "not_found")),
    ]
    with structlog.testing.capture_logs() as lines:
        for order_id, changes, expected in cases:
            refused = await shop.notify(order_id, **({"payment_id": "pay-2"} | changes))
            assert (refused.status_code, refused.json()["code"]) == expected
    assert await shop.everything() == before
    told = [line for line in lines if line["event"] == "money came that fits no order"]
    assert [line["fate"] for line in told][:5] == ["wrong_amount"] * 4 + ["ref_reused"]
    assert (told[0]["order"], told[0]["payment"], told[0]["amount"]) == (second, "pay-2", "98.99 CNY")
    assert told[-1]["fate"] == "unknown_order"


def counted(fate: str) -> float:
    return REGISTRY.get_sample_value("seckill_captures_total", {"fate": fate}) or 0.0


async def test_an_order_that_is_still_queued_can_wait(shop: Shop) -> None:
    """Nothing was changed, and the same notice pays it when it is written. It is counted as what it is."""
    made = (await shop.node.buy(await shop.node.create(), "ann")).json()
    before = {fate: counted(fate) for fate in ("still_queued", "unknown_order", "settled")}
    early = await shop.notify(made["order_id"])
    assert (early.status_code, early.json()["code"], early.headers["Retry-After"]) == (503, "still_queued", "1")
    await shop.node.work()
    paid = await shop.notify(made["order_id"])
    assert (paid.status_code, paid.json()["state"]) == (200, "paid")
    assert {fate: counted(fate) - n for fate, n in before.items()} == {
        "still_queued": 1,
        "unknown_order": 0,
        "settled": 1,
    }
    (sale,) = await shop.ledger.sales()
    old = OrderNumber(1, sale.round.lane, 1)
    assert (await shop.notify(shop.engine.order_ids.encode(int(old)))).status_code == 404, "it would be written by now"


async def test_a_node_that_has_not_heard_of_the_sale_sends_no_money_away(shop: Shop, settings: Settings) -> None:
    """A provider treats 404 as an answer and does not repeat the callback."""
    async with open_engine(settings) as other_engine:
        other = replace(shop, node=await make_node(settings, other_engine))
        made = (await shop.node.buy(await shop.node.create(), "ann")).json()
        assert (await other.notify(made["order_id"])).json()["code"] == "still_queued"
        await shop.node.work()
        assert (await other.notify(made["order_id"])).status_code == 200


async def test_a_second_capture_goes_back(shop: Shop) -> None:
    order_id = await shop.order(await shop.node.create())
    await shop.notify(order_id, "pay-1")
    answers = [await shop.notify(order_id, "pay-2") for _ in range(2)]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "already_paid", "paid")
    assert answers[0].content == answers[1].content
    assert (await shop.notify(order_id, "pay-1")).json()["state"] == "paid"
    [refund] = (await shop.node.http.get("/v1/admin/refunds", headers=OPERATOR)).json()["refunds"]
    assert (refund["payment_id"], refund["amount_cents"], refund["reason"], refund["done_at"]) == (
        "pay-2",
        PRICE,
        "already_paid",
        None,
    )
    assert await shop.refunds.make_due() == 1
    assert await shop.refunds.make_due() == 0
    [refund] = (await shop.node.http.get("/v1/admin/refunds", headers=OPERATOR)).json()["refunds"]
    assert refund["done_at"]
    await shop.check()


async def test_a_button_and_a_callback_pay_once(shop: Shop) -> None:
    sale = await shop.node.create(limit_per_buyer=2)
    pressed, told = [await shop.order(sale) for _ in range(2)]
    assert (await shop.act(pressed, "pay")).status_code == 200
    assert (await shop.notify(pressed)).json()["code"] == "already_paid"
    assert (await shop.notify(told, "pay-2")).status_code == 200
    assert (await shop.act(told, "pay")).status_code == 200, "it is paid already: nothing more is taken"
    await shop.check()


async def test_a_free_order_takes_no_money(shop: Shop) -> None:
    order_id = await shop.order(await shop.node.create(price_cents=0))
    before = await shop.everything()
    assert (await shop.notify(order_id, amount_cents=1)).json()["code"] == "wrong_amount"
    assert (await shop.notify(order_id, amount_cents=0)).status_code == 422
    assert await shop.everything() == before


async def test_without_a_secret_no_callback_can_be_checked(settings: Settings) -> None:
    async with open_engine(replace(settings, payment_secret=None)) as engine:
        node = await make_node(settings, engine)
        refused = await node.http.post(CALLBACK, content=b"{}")
        assert (refused.status_code, refused.json()["code"]) == (503, "not_set_up")
        assert "SECKILL_PAYMENT_SECRET" in refused.json()["detail"]
        await node.http.aclose()
