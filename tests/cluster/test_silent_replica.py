"""A replica that is connected and takes nothing in, and then takes over: `strict` has answered for nothing it lacks.

Its primary counts it among its replicas all the while, so it goes on writing. What it writes is on its disk alone.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.backends.redis.streams import StreamTransport
from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.admission import Claim
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundRef
from seckill.engine.rounds.rebuild_queue import RoundRecovery
from seckill.engine.rounds.shared_gate import SharedGate
from seckill.errors import GateError, GateUnclear, TransportUnavailable
from seckill.lab.servers.cluster import LocalCluster
from seckill.lab.servers.replicated import Node, ReplicatedServers, until
from seckill.ports.gate import Gate, GateView
from seckill.ports.transport import Delivery
from tests.api.conftest import OPERATOR, buyer, keeping, make_node
from tests.backends.gate.conftest import open_round
from tests.backends.gate.test_shares import lane_ref, of_lane
from tests.backends.sql.looking import order_rows
from tests.cluster.conftest import Shop, make_settings, open_shop, working
from tests.making import make_round
from tests.patience import PATIENCE_S

# The window stays open for as long as a test takes, on whatever machine.
LAG_S_MAX = 600
# Most of it is spent waiting for a replica that does not answer.
GATE_TIMEOUT_S = 1.0
# Longer than a primary takes to be replaced.
TAKEOVER_S = 20.0


@pytest.fixture(params=["sentinel", "cluster"])
def servers(request: pytest.FixtureRequest) -> ReplicatedServers:
    found: ReplicatedServers = request.getfixturevalue(request.param)
    return found


async def silence(servers: ReplicatedServers, lane: int) -> Node:
    """Returns the primary, which writes as long as it counts a replica."""
    primary = await servers.primary_of(keys.orders(lane))
    replica = await servers.replica_of(primary)
    await until("the replica has all", lambda: replica.has_all_of(primary))
    await primary.ask("CONFIG", "SET", "repl-timeout", LAG_S_MAX)
    await primary.ask("CONFIG", "SET", "min-replicas-max-lag", LAG_S_MAX, "min-replicas-to-write", 1)
    return primary if await servers.silence(primary) is replica else pytest.fail("another replica")


async def window_is_open(primary: Node) -> bool:
    facts = await primary.facts("replication")
    return facts["connected_slaves"] == facts["min_slaves_good_slaves"] == "1" and "state=online" in facts["slave0"]


async def fail_over(servers: ReplicatedServers, primary: Node) -> None:
    assert await window_is_open(primary), "the replica was counted until the primary died"
    await servers.fail_over(primary)


async def look_at(gate: Gate, ref: RoundRef) -> GateView:
    """Past every check of who may be asked. After a failover, the new primary has to be found first."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(GateError):
                view = await gate.inspect(ref)
                assert view is not None
                return view
            await asyncio.sleep(0.05)


async def gate_view(shop: Shop) -> GateView:
    (sale,) = await shop.engine.ledger.sales()
    return await look_at(shop.engine.gate, sale.round.ref)


async def buy_in_vain(shop: Shop, user: str, orders: int) -> None:
    """Presses until there are orders, as many as that; on a busy machine the first call may not get so far."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            assert await shop.buy(user) == 503
            if (await gate_view(shop)).admitted == orders:
                return


async def settle(servers: ReplicatedServers, shop: Shop) -> None:
    """Everything runs again, and every answer is kept."""
    await servers.heal()
    for user in list(shop.accepted):
        assert await shop.insist(user) == 202, "the same key, the same order"
    await shop.until_settled()
    assert await shop.rows() == shop.accepted
    assert await shop.broken() == {}


async def test_nobody_is_told_of_an_order_that_no_replica_has(servers: ReplicatedServers, tmp_path: Path) -> None:
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    assert settings.replicas_to_wait_for == 1
    async with open_shop(settings, units=50) as shop, open_engine(settings) as other_engine:
        other = await make_node(settings, other_engine)
        assert await shop.insist("early") == 202
        primary = await silence(servers, await shop.lane())
        buyers = [f"late{i}" for i in range(4)]
        for i, user in enumerate(buyers):
            await buy_in_vain(shop, user, 2 + i)
            assert await shop.buy(user) == 503, "the same key, over another connection"
            assert (await other.buy(shop.sale, user, key=f"key-of-{user}")).status_code == 503, "on another node"
            assert (await other.buy(shop.sale, user)).status_code == 503, "at the limit: it would name the order"
            listed = await shop.node.http.get("/v1/orders", headers=buyer(user))
            assert listed.status_code == 503, "nor does the list"
        assert "unknown" in shop.refusals
        assert await shop.buy("early") == 503, "whether hers is on a replica cannot be told now"
        assert (await gate_view(shop)).admitted == 1 + len(buyers), "they have orders, all the same"
        assert list(shop.accepted) == ["early"]
        await fail_over(servers, primary)
        assert (await gate_view(shop)).admitted == 1, "and the replica has none of them"
        await other.http.aclose()
        async with keeping(settings, shop.engine), working(shop):
            await servers.heal()
            for user in buyers:
                assert await shop.insist(user) == 202
            await settle(servers, shop)
    assert len(shop.accepted) == 1 + len(buyers)


@pytest.mark.parametrize("acks", [1, 0], ids=["waits", "control"])
async def test_no_worker_gets_an_order_that_no_replica_has(
    servers: ReplicatedServers, tmp_path: Path, acks: int
) -> None:
    """The replica that takes over has never heard of it. Its buyer, who was told that the result is unknown, tries
    again with the same key, buys and cancels. A worker that had the first order in hand would write it all the same."""
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=50) as shop:
        lane = await shop.lane()
        primary = await silence(servers, lane)
        await buy_in_vain(shop, "ann", 1)
        slow = StreamTransport(settings.redis_url, replica_acks=acks)
        await slow.prepare([lane])
        in_hand: list[Delivery] = []
        with suppress(TransportUnavailable):
            in_hand = await slow.read(10, PATIENCE_S)
        assert len(in_hand) == 1 - acks
        pending = await primary.ask("XPENDING", keys.orders(lane), keys.WORKERS_GROUP)
        assert pending[0] == 1, "it was read from the primary"
        await fail_over(servers, primary)
        assert (await gate_view(shop)).admitted == 0, "the replica has never heard of it"
        async with keeping(settings, shop.engine), working(shop):
            async with asyncio.timeout(PATIENCE_S):
                while await shop.engine.gate.moved_lanes([lane]):
                    await asyncio.sleep(0.05)
            await servers.heal()
            assert await shop.insist("ann") == 202
            await shop.until_settled()
            order = f"/v1/orders/{shop.accepted['ann']}"
            assert (await shop.node.http.post(f"{order}/cancel", headers=buyer("ann"))).status_code == 200
            await shop.engine.ledger.record([each.admission for each in in_hand if each.admission is not None])
        await slow.close()
        ledger = shop.engine.ledger
        assert isinstance(ledger, SqlLedger)
        written = {shop.engine.order_ids.encode(row.id) for row in await order_rows(ledger)}
        assert written == {shop.accepted["ann"], *(shop.engine.order_ids.encode(int(n)) for n in numbers(in_hand))}
        assert len(written) == (1 if acks else 2), "one key, one order"


def numbers(deliveries: Sequence[Delivery]) -> list[OrderNumber]:
    return [delivery.admission.number for delivery in deliveries if delivery.admission is not None]


async def test_who_takes_over_does_not_speak_for_what_was_read_before(
    servers: ReplicatedServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The primary dies between the reading and the question whether a replica has it. Its successor has a replica, and
    never had the order."""
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=50) as shop:
        lane = await shop.lane()
        primary = await silence(servers, lane)
        await buy_in_vain(shop, "ann", 1)
        slow = StreamTransport(settings.redis_url, replica_acks=1)
        await slow.prepare([lane])
        wait = slow._replicated

        async def wait_after_a_takeover(*asked: Any) -> None:
            monkeypatch.setattr(slow, "_replicated", wait)
            await fail_over(servers, primary)
            await servers.heal()
            successor = await servers.until_replicated(keys.orders(lane))
            assert successor is not primary
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    with suppress(TransportUnavailable):
                        if not await slow.backlog([lane]):
                            break
                    await asyncio.sleep(0.05)
            await wait(*asked)

        monkeypatch.setattr(slow, "_replicated", wait_after_a_takeover)
        in_hand: list[Delivery] = []
        with suppress(TransportUnavailable):
            in_hand = await slow.read(10, TAKEOVER_S)
        assert slow._replicated == wait, "it was read, and the primary has been replaced"
        assert in_hand == []
        await slow.close()


async def test_a_server_that_has_taken_over_does_not_answer_for_what_was_read_from_the_one_before(
    servers: ReplicatedServers, tmp_path: Path
) -> None:
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=5) as shop:
        gate, lane = shop.engine.gate, await shop.lane()
        standing = await gate.standing([lane])
        await gate.assure([lane], standing)
        primary = await silence(servers, lane)
        await fail_over(servers, primary)
        await servers.heal()
        async with asyncio.timeout(PATIENCE_S):
            while "taken over" not in await why_not(gate, lane, standing):
                await asyncio.sleep(0.05)  # the new primary has to be found, and to have its replica
            assert await why_not(gate, lane, await gate.standing([lane])) == ""


async def why_not(gate: Gate, lane: int, standing: Mapping[int, str]) -> str:
    try:
        await gate.assure([lane], standing)
    except GateError as error:
        return str(error)
    return ""


async def test_what_was_on_the_way_is_answered_for_when_the_replica_has_it(
    servers: ReplicatedServers, tmp_path: Path
) -> None:
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=5) as shop, keeping(settings, shop.engine):
        primary = await silence(servers, await shop.lane())
        await buy_in_vain(shop, "ann", 1)
        assert await shop.buy("ann") == 503
        assert await window_is_open(primary)
        await servers.heal()
        assert await shop.insist("ann") == 202
        assert (await gate_view(shop)).admitted == 1, "it is the order of the first time"
        listed = await shop.node.http.get("/v1/orders", headers=buyer("ann"))
        assert [order["order_id"] for order in listed.json()["orders"]] == [shop.accepted["ann"]]
        async with working(shop):
            await settle(servers, shop)


@pytest.mark.parametrize("and_back", [False, True], ids=["there", "there and back"])
async def test_units_that_came_back_are_on_sale_after_all(
    servers: ReplicatedServers, tmp_path: Path, and_back: bool
) -> None:
    """A release that the replica lacks is made again by the comparison with the ledger. Also when the first primary has
    taken over again before a keeper has compared: it has the replica's data now, and was vouched for once."""
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=1) as shop:
        assert await shop.insist("ann") == 202
        await shop.node.work()
        primary = await silence(servers, await shop.lane())
        order = shop.accepted.pop("ann")
        cancelled = await shop.node.http.post(f"/v1/orders/{order}/cancel", headers=buyer("ann"))
        assert cancelled.status_code == 200, cancelled.text
        async with keeping(settings, shop.engine), asyncio.timeout(PATIENCE_S):
            while await shop.engine.ledger.outbox(1, []) or (await gate_view(shop)).available == 0:
                await asyncio.sleep(0.05)
        await fail_over(servers, primary)
        assert (await gate_view(shop)).available == 0, "the replica has never heard of it"
        await servers.heal()
        if and_back:
            assert await servers.fail_over(await servers.primary_of(keys.orders(await shop.lane()))) is primary
            await servers.heal()
        async with asyncio.timeout(PATIENCE_S):  # no keeper has compared it; but first it has to be found
            while not await shop.engine.gate.moved_lanes([await shop.lane()]):
                await asyncio.sleep(0.05)
        async with keeping(settings, shop.engine), working(shop):
            assert await shop.insist("bob") == 202
            await shop.until_settled()
            assert (await shop.rows())["bob"] == shop.accepted["bob"]
            assert await shop.broken() == {}


@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_what_operators_did_stays_done(servers: ReplicatedServers, tmp_path: Path, verb: str) -> None:
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=9) as shop:

        async def operate(verb: str) -> None:
            response = await shop.node.http.post(f"/v1/sales/{shop.sale['id']}/{verb}", headers=OPERATOR)
            assert response.status_code == 200, response.text

        assert await shop.insist("early") == 202
        if verb == "resume":
            await operate("pause")
        primary = await silence(servers, await shop.lane())
        before = (await gate_view(shop)).status
        await operate(verb)
        assert (await gate_view(shop)).status != before
        await fail_over(servers, primary)
        assert (await gate_view(shop)).status == before, "the replica has never heard of it"
        async with keeping(settings, shop.engine), working(shop):
            await servers.heal()
            assert await shop.insist("late") == (409 if verb == "pause" else 202), "never by the rules of before"
            await settle(servers, shop)
            if verb == "pause":
                await operate("resume")
                assert await shop.insist("late") == 202


async def test_a_round_that_was_rebuilt_admits_nobody_from_before_its_rebuild(
    servers: ReplicatedServers, tmp_path: Path
) -> None:
    """The replica has the round as it was before the loss, open to buyers; but the ledger takes no order of that epoch
    any more."""
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=50) as shop:
        for i in range(3):
            assert await shop.insist(f"early{i}") == 202
        (sale,) = await shop.engine.ledger.sales()
        ref = sale.round.ref
        in_hand = await shop.engine.transport.read(10, PATIENCE_S)
        primary = await silence(servers, ref.lane)
        await shop.node.worker.record(in_hand)
        await primary.ask("DEL", keys.round_(ref), keys.buyers(ref))
        async with keeping(settings, shop.engine), asyncio.timeout(PATIENCE_S):
            while (sale := (await shop.engine.ledger.sales())[0]).round.epoch == 1 or sale.round.synced_revision == 0:
                await asyncio.sleep(0.05)
        assert (await gate_view(shop)).epoch == 2
        await fail_over(servers, primary)
        view = await gate_view(shop)
        assert (view.epoch, view.status, view.backlog) == (1, "open", 3), "the replica has never heard of it"
        async with keeping(settings, shop.engine):
            await servers.heal()
            async with asyncio.timeout(PATIENCE_S):
                while await shop.engine.gate.moved_lanes([ref.lane]):
                    await asyncio.sleep(0.01)
            for i in range(10):  # the lane is open again, and the keeper waits for workers to write what is there
                await shop.buy(f"late{i}")
            assert (await gate_view(shop)).epoch == 1, "the window was hit"
            async with working(shop):
                for i in range(10):
                    assert await shop.insist(f"late{i}") == 202
                await settle(servers, shop)


async def test_a_round_whose_rebuild_was_begun_admits_nobody_from_before(
    servers: ReplicatedServers, tmp_path: Path
) -> None:
    """The keeper that rebuilds it has fenced it and raised its epoch, and died with the primary. The replica has heard
    of none of this: it has the round open to buyers, whose orders would be void."""
    settings = make_settings(servers.url, tmp_path, gate_timeout_s=GATE_TIMEOUT_S)
    async with open_shop(settings, units=50) as shop:
        for i in range(3):
            assert await shop.insist(f"early{i}") == 202
        await shop.node.work()
        (sale,) = await shop.engine.ledger.sales()
        primary = await silence(servers, sale.round.lane)
        await shop.engine.gate.fence(sale.round)
        assert await shop.engine.ledger.next_epoch(sale.round) is not None
        await fail_over(servers, primary)
        view = await gate_view(shop)
        assert (view.epoch, view.status) == (1, "open"), "the replica has never heard of it"
        await servers.heal()
        use = UseCases(shop.engine, settings)
        await use.sale_cache.refresh_sales()
        async with asyncio.timeout(PATIENCE_S):
            while not await opened_lanes(use.recovery):
                await asyncio.sleep(0.05)
        for i in range(10):  # the lane is open again, and no keeper has gone on with the rebuild
            assert await shop.buy(f"late{i}") == 503
        async with keeping(settings, shop.engine), working(shop):
            for i in range(10):
                assert await shop.insist(f"late{i}") == 202
            await settle(servers, shop)


async def opened_lanes(recovery: RoundRecovery) -> int:
    with suppress(GateError):  # the new primary has to be found first
        return await recovery.look_after_lanes()
    return 0


async def test_units_are_not_got_before_a_replica_knows_that_they_were_sent(cluster: LocalCluster) -> None:
    """Otherwise a replica that takes over would have them once more, and both lanes would sell them."""
    gate = RedisGate(cluster.url, timeout_s=GATE_TIMEOUT_S, backlog_max=1000, replica_acks=1)
    whole = SharedGate(gate)
    try:
        round_ = await open_round(whole, make_round(total=20, lanes=2))
        here, there = lane_ref(round_, 0), lane_ref(round_, 1)
        assert await cluster.primary_of(keys.round_(here)) is not await cluster.primary_of(keys.round_(there))
        sold = [Claim(user, 1) for user in of_lane(round_, 1, 10)]
        reply = await whole.admit(round_.ref, sold)
        assert {answer.outcome for answer in reply.answers} == {Outcome.ADMITTED}
        primary = await silence(cluster, here.lane)
        for _ in range(3):
            with pytest.raises(GateUnclear):
                await gate.give(here, 1, there.lane, 0, 4)
        for user in of_lane(round_, 1, 3, prefix="late"):
            (answer,) = (await whole.admit(round_.ref, [Claim(user, 1)])).answers
            assert answer.outcome is Outcome.NOT_READY, "there are units, and they cannot be got now"
        assert (await look_at(gate, here)).sent == {there.lane: 4}, "the window was hit"
        await fail_over(cluster, primary)
        assert (await look_at(gate, here)).available + (await look_at(gate, there)).available == 10, "each unit once"
    finally:
        await gate.close()
