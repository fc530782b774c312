"""A gate forgets what it has admitted for a buyer in a line, and the worker that held it comes too late: the order
fails. Its buyer is served again, and with an order that is there; on a real Valkey and on `memory://`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from seckill.audit import Verdict
from seckill.backends.memory.store import Contents
from seckill.bootstrap.engine import Engine, new_memory, open_engine
from seckill.engine.line.serving import ATTEMPTS_MAX
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.errors import LedgerRefused
from seckill.settings import Settings
from tests.api.conftest import Node, buyer
from tests.api.test_line import Keeping, joined, look
from tests.api.test_rebuild import flush, rebuild

Forget = Callable[[], Awaitable[None]]


@pytest.fixture(params=["valkey", "memory"])
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return replace(settings, redis_url="memory://") if request.param == "memory" else settings


@pytest.fixture
def store() -> Any:
    return new_memory()


@pytest.fixture
async def engine(settings: Settings, store: Any) -> AsyncIterator[Engine]:
    async with open_engine(settings, store if settings.in_memory else None) as engine:
        yield engine


@pytest.fixture
def forget(settings: Settings, store: Any) -> Forget:
    async def empty() -> None:
        store.contents = Contents()

    return empty if settings.in_memory else lambda: flush(settings.redis_url)


async def order_state(node: Node, entry: dict[str, Any], user: str) -> str:
    answer = await node.http.get(f"/v1/orders/{entry['order_id']}", headers=buyer(user))
    return str(answer.json()["state"])


async def failed_orders(node: Node, user: str) -> int:
    mine = (await node.http.get("/v1/orders", headers=buyer(user))).json()["orders"]
    return [order["state"] for order in mine].count("failed")


@pytest.mark.parametrize("losses", [1, 2])
async def test_who_was_admitted_before_the_gate_forgot_is_served_again(
    node: Node, settings: Settings, engine: Engine, forget: Forget, losses: int
) -> None:
    sale = await node.create(units=1, order="arrival")
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob")}
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.use.serving.step()
    in_hand = await engine.transport.read(10, 0)
    assert len(in_hand) == 1, "admitted, and in a worker's hand"
    await forget()
    await rebuild(keeper.use.keeper)
    await node.worker.prepare()
    await node.worker.record(in_hand)
    while await keeper.use.failures.retry_due():
        pass
    assert await failed_orders(node, "ann") == 1, "the window was hit"
    if losses == 2:  # what is rebuilt now knows the order that failed, under the request of this entry
        await forget()
        await rebuild(keeper.use.keeper)
        await node.worker.prepare()
    await keeper.use.serving.step()
    assert (await look(node, entries["ann"], "ann"))["state"] == "waiting", "nobody is told of an order that failed"
    await keeper.serve()
    ann = await look(node, entries["ann"], "ann")
    assert (ann["state"], await order_state(node, ann, "ann")) == ("served", "unpaid")
    assert (await look(node, entries["bob"], "bob"))["state"] == "waiting", "nobody before a better place"
    paid = await node.http.post(f"/v1/orders/{ann['order_id']}/pay", headers=buyer("ann"))
    assert paid.json()["state"] == "paid"
    if engine.auditor is not None:
        report = await engine.auditor.read(full=True)
        assert report.verdict is Verdict.HOLDS, report.findings


async def test_whose_orders_fail_time_after_time_is_told_and_the_unit_goes_to_the_next(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger refuses ann's order for an unknown reason."""
    sale = await node.create(units=1, order="arrival")
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob")}
    keeper = Keeping(node, settings)
    await keeper.draw()
    recording = engine.ledger._recording  # type: ignore[attr-defined]
    right = recording.run

    async def refuse(connection: Any, admissions: Any) -> Any:
        if any(each.user == "ann" for each in admissions):
            raise LedgerRefused("made up")
        return await right(connection, admissions)

    monkeypatch.setattr(recording, "run", refuse)
    impatient = DeadLetterDesk(engine.ledger, keeper.use.alarm, ())
    for attempt in range(ATTEMPTS_MAX):
        assert (await look(node, entries["ann"], "ann"))["state"] == "waiting"
        await keeper.use.serving.step()
        await node.work()
        while await impatient.retry_due():
            pass
        assert await failed_orders(node, "ann") == attempt + 1
        await keeper.use.serving.step()
        assert (await look(node, entries["ann"], "ann"))["state"] == "waiting", "its unit is not back yet"
        await keeper.use.release_desk.pass_on()
    await keeper.serve()
    ann = await look(node, entries["ann"], "ann")
    assert (ann["state"], ann["reason"]) == ("passed_over", "failed")
    bob = await look(node, entries["bob"], "bob")
    assert (bob["state"], await order_state(node, bob, "bob")) == ("served", "unpaid")
    if engine.auditor is not None:
        report = await engine.auditor.read(full=True)
        assert report.verdict is Verdict.HOLDS, report.findings
