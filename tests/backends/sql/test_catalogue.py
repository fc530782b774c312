import asyncio
import secrets
from dataclasses import replace
from typing import Any

import pytest

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.domain.sale import UNITS_MAX, RoundStatus, Sale, SaleChange
from seckill.errors import LedgerRefused, NotPossible
from tests.backends.sql.looking import now_ms, write
from tests.backends.sql.making import HOUR_MS, admission, draft
from tests.patience import PATIENCE_S


async def test_a_new_sale_has_its_first_round(ledger: SqlLedger) -> None:
    wanted = draft(title="袜子", units=7, limit_per_buyer=2, price_cents=99, pay_within_s=60)
    before_ms = await now_ms(ledger)
    sale = await ledger.create_sale(wanted, lane=5)
    assert (sale.title, sale.price_cents, sale.currency, sale.pay_within_s) == ("袜子", 99, "CNY", 60)
    assert before_ms <= sale.created_ms <= await now_ms(ledger)
    assert sale.changed == 1
    round_ = sale.round
    assert (round_.sale_id, round_.ordinal, round_.lane) == (sale.id, 1, 5)
    assert (round_.total, round_.limit_per_buyer, round_.status) == (7, 2, RoundStatus.OPEN)
    assert (round_.begins_ms, round_.ends_ms) == (wanted.begins_ms, wanted.ends_ms)
    assert (round_.epoch, round_.revision, round_.synced_revision, round_.opened_ms) == (1, 1, 0, None)
    assert await ledger.sale(sale.id) == sale
    assert await ledger.sales() == [sale]


async def test_an_unknown_sale(ledger: SqlLedger) -> None:
    assert await ledger.sale(12345) is None
    assert await ledger.change_sale(12345, SaleChange(title="x")) is None
    assert await ledger.sales() == []


@pytest.mark.parametrize(
    "bad",
    [{"units": 0}, {"units": -1}, {"limit_per_buyer": 0}, {"ends_ms": 5, "begins_ms": 5}, {"price_cents": -1}],
)
async def test_an_impossible_sale_leaves_nothing(ledger: SqlLedger, bad: dict[str, Any]) -> None:
    with pytest.raises(LedgerRefused):
        await ledger.create_sale(replace(draft(), **bad), lane=0)
    assert await ledger.sales() == []
    assert (await ledger.create_sale(draft(), lane=0)).changed == 1, "the version was not used up"


async def test_sales_that_changed_after_a_version(ledger: SqlLedger) -> None:
    first, second, third = [await ledger.create_sale(draft(), lane=0) for _ in range(3)]
    assert [sale.changed for sale in (first, second, third)] == [1, 2, 3]
    changed = await ledger.change_sale(first.id, SaleChange(title="new"))
    assert changed is not None
    assert changed.changed == 4
    assert await ledger.sales(changed_after=2) == [third, changed]
    assert await ledger.sales(changed_after=4) == []


async def test_a_sale_comes_with_its_newest_rounds(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    for ordinal in (2, 3):
        await write(
            ledger,
            "INSERT INTO rounds "
            "(sale_id, ordinal, lane, total, limit_per_buyer, scheduled_ms, begins_ms, ends_ms, status) "
            f"SELECT sale_id, {ordinal}, lane, total, limit_per_buyer, scheduled_ms + {ordinal} * 86400000, "
            f"begins_ms + {ordinal} * 86400000, ends_ms + {ordinal} * 86400000, status FROM rounds WHERE ordinal = 1",
        )
    [found] = await ledger.sales()
    assert (found.id, found.round.ordinal) == (sale.id, 3)
    assert (await ledger.sale(sale.id)) == found
    assert (await ledger.sale(sale.id, sale.round.id)) == sale
    assert (await ledger.sale(sale.id + 1, sale.round.id)) is None
    assert [each.round.ordinal for each in await ledger.sales(rounds_max=2)] == [2, 3]
    assert [each.round.ordinal for each in await ledger.sales(rounds_max=9)] == [1, 2, 3]


async def changed(ledger: SqlLedger, sale: Sale, change: SaleChange) -> Sale:
    after = await ledger.change_sale(sale.id, change)
    assert after is not None
    assert await ledger.sale(sale.id) == after
    return after


async def test_units_the_limit_the_end_and_the_status_change_with_a_new_revision(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=10), lane=0)
    after = await changed(ledger, sale, SaleChange(add_units=5))
    assert (after.round.total, after.round.revision, after.changed) == (15, 2, 2)
    after = await changed(ledger, sale, SaleChange(limit_per_buyer=3))
    assert (after.round.limit_per_buyer, after.round.revision) == (3, 3)
    after = await changed(ledger, sale, SaleChange(ends_ms=sale.round.ends_ms + 1))
    assert (after.round.ends_ms, after.round.revision) == (sale.round.ends_ms + 1, 4)
    after = await changed(ledger, sale, SaleChange(status=RoundStatus.PAUSED))
    assert (after.round.status, after.round.revision) == (RoundStatus.PAUSED, 5)
    after = await changed(ledger, sale, SaleChange(status=RoundStatus.OPEN, add_units=1))
    assert (after.round.status, after.round.total, after.round.revision) == (RoundStatus.OPEN, 16, 6)
    assert after.changed == 6


async def test_a_title_is_no_matter_for_the_gate(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    after = await changed(ledger, sale, SaleChange(title="Better socks"))
    assert (after.title, after.round, after.changed) == ("Better socks", sale.round, 2)


async def test_what_is_so_already_changes_nothing(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    round_ = sale.round
    same = SaleChange(
        title=sale.title,
        limit_per_buyer=round_.limit_per_buyer,
        begins_ms=round_.begins_ms,
        ends_ms=round_.ends_ms,
        status=round_.status,
    )
    for change in (SaleChange(), same):
        assert await ledger.change_sale(sale.id, change) == sale
    assert (await ledger.create_sale(draft(), lane=0)).changed == 2, "no version was used up"


async def test_the_beginning_can_change_until_it_has_come(ledger: SqlLedger) -> None:
    begins_ms = await now_ms(ledger) + HOUR_MS
    sale = await ledger.create_sale(draft(begins_ms=begins_ms), lane=0)
    after = await changed(ledger, sale, SaleChange(begins_ms=begins_ms - 2 * HOUR_MS))
    assert (after.round.begins_ms, after.round.revision) == (begins_ms - 2 * HOUR_MS, 2)
    with pytest.raises(NotPossible, match="The sale has begun"):
        await ledger.change_sale(sale.id, SaleChange(begins_ms=begins_ms))
    assert await ledger.sale(sale.id) == after


async def test_the_end_stays_after_the_beginning(ledger: SqlLedger) -> None:
    begins_ms = await now_ms(ledger) + HOUR_MS
    sale = await ledger.create_sale(draft(begins_ms=begins_ms, ends_ms=begins_ms + 10), lane=0)
    for change in (SaleChange(ends_ms=begins_ms), SaleChange(begins_ms=begins_ms + 10)):
        with pytest.raises(NotPossible, match="must end after it begins"):
            await ledger.change_sale(sale.id, change)
    after = await changed(ledger, sale, SaleChange(begins_ms=begins_ms + 10, ends_ms=begins_ms + 11))
    assert (after.round.begins_ms, after.round.ends_ms) == (begins_ms + 10, begins_ms + 11)


@pytest.mark.parametrize("add_units", [-1, UNITS_MAX])
async def test_units_only_grow_and_not_beyond_all_measure(ledger: SqlLedger, add_units: int) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    with pytest.raises(NotPossible):
        await ledger.change_sale(sale.id, SaleChange(add_units=add_units))
    assert await ledger.sale(sale.id) == sale


async def test_closed_is_for_good(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    closed = await changed(ledger, sale, SaleChange(status=RoundStatus.CLOSED))
    assert (closed.round.status, closed.round.revision) == (RoundStatus.CLOSED, 2)
    for change in (
        SaleChange(status=RoundStatus.OPEN),
        SaleChange(status=RoundStatus.PAUSED),
        SaleChange(add_units=1),
        SaleChange(ends_ms=closed.round.ends_ms + 1),
        SaleChange(begins_ms=closed.round.begins_ms + 1),
        SaleChange(limit_per_buyer=2),
        SaleChange(title="x", add_units=1),
    ):
        with pytest.raises(NotPossible, match="closed for good"):
            await ledger.change_sale(sale.id, change)
    assert await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.CLOSED)) == closed
    assert (await changed(ledger, sale, SaleChange(title="Sold"))).round == closed.round


async def test_added_units_can_be_sold(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=1), lane=0)
    await ledger.record([admission(sale.round, 1)])
    with pytest.raises(LedgerRefused, match="sold out"):
        await ledger.record([admission(sale.round, 2)])
    await ledger.change_sale(sale.id, SaleChange(add_units=1))
    assert (await ledger.record([admission(sale.round, 2)])).new == 1


async def test_units_added_by_many_operators_at_once_are_all_there(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=1), lane=0)
    await asyncio.gather(*[ledger.change_sale(sale.id, SaleChange(add_units=1)) for _ in range(40)])
    after = await ledger.sale(sale.id)
    assert after is not None
    assert (after.round.total, after.round.revision, after.changed) == (41, 41, 41)


async def test_no_reader_ever_passes_over_a_commit_that_comes_later(ledger: SqlLedger, ledger_url: str) -> None:
    """A follower asks again and again for what came after the newest version it has seen, while others create."""
    other = open_ledger(ledger_url)
    seen: list[int] = []

    async def follow() -> None:
        version = 0
        while len(seen) < 120:
            for sale in await ledger.sales(changed_after=version):
                seen.append(sale.id)
                version = sale.changed
            await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE_S):
        creating = [one.create_sale(draft(), lane=0) for one in (ledger, other) for _ in range(60)]
        created, _ = await asyncio.gather(asyncio.gather(*creating), follow())
    await other.close()
    assert sorted(seen) == sorted(sale.id for sale in created)
    assert sorted(sale.changed for sale in created) == list(range(1, 121))


async def test_the_key_of_the_public_ids_is_made_once(ledger: SqlLedger, ledger_url: str) -> None:
    others = [open_ledger(ledger_url) for _ in range(4)]
    keys = await asyncio.gather(*[one.id_key() for one in (ledger, *others)])
    for other in others:
        await other.close()
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    assert await ledger.id_key() == keys[0]
    assert keys[0] != secrets.token_bytes(32)
