"""A pause by the audit: lifted and said when nothing is wrong after all, and never against an operator."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from seckill.audit import Verdict, open_auditor
from seckill.domain.sale import Round, RoundStatus, SaleChange
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.operations.audit_watchdog import Watchdog
from tests.api.conftest import OPERATOR
from tests.audit.conftest import World
from tests.audit.planting import delete_entry
from tests.audit.test_document import Told
from tests.making import use_cases


@asynccontextmanager
async def a_keeper(world: World, alarm: Told) -> AsyncIterator[Watchdog]:
    """Its audit. It knows nothing of what others have seen."""
    desk = OperatorDesk(world.engine.ledger, world.engine.gate)
    async with open_auditor(world.settings) as auditor:
        yield Watchdog(auditor, alarm, world.engine.ledger, desk, pauses=True)


async def look_wrong(world: World, by: int = 1) -> None:
    """Makes the gate show a wrong number; taking back the same number makes it right again."""
    await world.redis.hincrby(await world.round_key(), "available", by)


async def round_of(world: World) -> Round:
    (sale,) = await world.engine.ledger.sales()
    return sale.round


async def press(world: World, verb: str) -> None:
    response = await world.node.http.post(f"/v1/sales/{world.sale['id']}/{verb}", headers=OPERATOR)
    assert response.status_code == 200, response.text


async def buy(world: World, user: str) -> Any:
    await world.node.refresh()
    return (await world.node.buy(world.sale, user)).json()


async def test_a_pause_by_a_false_alarm_is_lifted_by_another_keeper_and_said(busy: World) -> None:
    first, second = Told(), Told()
    async with a_keeper(busy, first) as keeper:
        await look_wrong(busy)
        await keeper.step()
        assert [facts["invariant"] for facts in first.facts] == ["stock"]
        assert (await buy(busy, "gus"))["code"] == "paused"
    await look_wrong(busy, -1)
    async with a_keeper(busy, second) as keeper:
        await keeper.step()
        assert second.resolved == [{"sale": busy.sale["id"], "round": busy.round_id}]
        assert (await buy(busy, "gus"))["state"] == "queued", "it sells again"
        await keeper.step()
        assert (len(second.resolved), second.facts) == (1, []), "said once"
    assert ((await round_of(busy)).status, (await round_of(busy)).audit_epoch) == (RoundStatus.OPEN, None)


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_who_has_raised_an_alarm_also_says_that_it_is_over(busy: World) -> None:
    alarm = Told()
    async with a_keeper(busy, alarm) as keeper:
        await look_wrong(busy)
        await keeper.step()
        await look_wrong(busy, -1)
        await keeper.step()
    assert {"invariant": "stock", "round": busy.round_id} in alarm.resolved
    assert {"sale": busy.sale["id"], "round": busy.round_id} in alarm.resolved


async def test_a_true_finding_keeps_the_sale_paused(busy: World) -> None:
    await delete_entry(busy)
    for _ in range(2):
        alarm = Told()
        async with a_keeper(busy, alarm) as keeper:
            for _ in range(3):
                assert (await keeper.step()).verdict is Verdict.BROKEN
        assert (len(alarm.facts), alarm.resolved) == (1, [])
        assert (await buy(busy, "gus"))["code"] == "paused"


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_what_cannot_be_told_lifts_nothing(busy: World) -> None:
    alarm = Told()
    await look_wrong(busy)
    async with a_keeper(busy, alarm) as keeper:
        await keeper.step()
        await look_wrong(busy, -1)
        key = await busy.round_key()
        await busy.redis.rename(key, f"{key}-hidden")
        for _ in range(3):
            assert (await keeper.step()).verdict is Verdict.UNKNOWN
            assert (await round_of(busy)).status is RoundStatus.PAUSED
        assert alarm.resolved == []
        await busy.redis.rename(f"{key}-hidden", key)
        await keeper.step()
        assert (await round_of(busy)).status is RoundStatus.OPEN


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_after_a_rebuild_it_stays_paused_for_a_person_to_know_why(busy: World) -> None:
    alarm = Told()
    await busy.redis.hdel(await busy.buyers_key(), "ann")
    async with a_keeper(busy, alarm) as keeper:
        await keeper.step()
        await busy.node.work()
        rebuilder = use_cases(busy.engine).rebuilder()
        while not await rebuilder.step(await round_of(busy)):
            pass
        while (await keeper.step()).verdict is not Verdict.HOLDS:
            pass
        await keeper.step()
    assert ((await round_of(busy)).epoch, (await round_of(busy)).status) == (2, RoundStatus.PAUSED)
    await press(busy, "resume")
    assert (await buy(busy, "gus"))["state"] == "queued"


async def test_an_operators_pause_is_never_lifted(busy: World) -> None:
    async with a_keeper(busy, Told()) as keeper:
        await look_wrong(busy)
        await keeper.step()
        await press(busy, "pause")  # it is paused already: now by a person
        await look_wrong(busy, -1)
        for _ in range(2):
            assert (await keeper.step()).verdict is Verdict.HOLDS
        assert (await round_of(busy)).status is RoundStatus.PAUSED
        await press(busy, "resume")
        await press(busy, "pause")
        await keeper.step()
        assert (await round_of(busy)).status is RoundStatus.PAUSED


async def test_what_an_operator_has_paused_first_does_not_become_the_audits(busy: World) -> None:
    """This holds even if they press in the same moment as the audit."""
    ledger = busy.engine.ledger
    (sale,) = await ledger.sales()
    await press(busy, "pause")
    again = await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.PAUSED, by_audit=True), sale.round.id)
    assert again is not None
    assert again.round.audit_epoch is None
    await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.OPEN, by_audit=True), sale.round.id)
    assert (await round_of(busy)).status is RoundStatus.PAUSED


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_who_resumes_all_the_same_has_the_last_word_until_something_else_breaks(busy: World) -> None:
    await look_wrong(busy)
    async with a_keeper(busy, Told()) as keeper:
        await keeper.step()
        await press(busy, "resume")
        await keeper.step()
        async with a_keeper(busy, Told()) as other:
            await other.step()
        assert (await round_of(busy)).status is RoundStatus.OPEN
        await delete_entry(busy)
        await keeper.step()
        assert (await round_of(busy)).status is RoundStatus.PAUSED, "of this they did not know"


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_when_nothing_is_wrong_any_more_the_next_thing_pauses_again(busy: World) -> None:
    await look_wrong(busy)
    async with a_keeper(busy, Told()) as keeper:
        await keeper.step()
        await press(busy, "resume")
        await look_wrong(busy, -1)
        await keeper.step()
    assert (await round_of(busy)).audit_epoch is None
    await look_wrong(busy)
    async with a_keeper(busy, Told()) as other:
        await other.step()
    assert (await round_of(busy)).status is RoundStatus.PAUSED
