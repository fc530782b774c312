"""Lists of buyers: replaced as a whole, read as a whole, asked about one; on every database."""

import asyncio
from array import array

import pytest

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.audience import PART_DIGESTS
from seckill.domain.audience import Audience, EarlyAccess
from seckill.domain.audience_list import digest_of
from seckill.domain.door import Door, PassKind
from seckill.domain.sale import Sale, SaleChange
from seckill.errors import NotPossible
from tests.backends.sql.making import HOUR_MS, draft

DOOR = Door(
    pass_kind=PassKind.WORK,
    work=12_345,
    audience=Audience(groups=("gold",), early=(EarlyAccess(groups=("vip", "press"), minutes=10),), listed=True),
)


def digests(prefix: str, count: int) -> "array[int]":
    return array("q", sorted(digest_of(f"{prefix}-{number}") for number in range(count)))


async def make_sale(ledger: SqlLedger, door: Door = DOOR) -> Sale:
    return await ledger.create_sale(draft(door=door), lane=0)


async def test_the_door_is_kept_and_changed(ledger: SqlLedger) -> None:
    begins_ms = (await make_sale(ledger)).round.begins_ms + 100 * HOUR_MS
    sale = await ledger.create_sale(draft(door=DOOR, begins_ms=begins_ms), lane=0)
    known = await ledger.sale(sale.id)
    assert known is not None
    assert (known.door, known.round.early_s) == (DOOR, 600)
    assert known.round.opens_ms == begins_ms - 600_000
    changed = await ledger.change_sale(sale.id, SaleChange(door=Door()))
    assert changed is not None
    assert (changed.door, changed.round.early_s, changed.round.revision) == (Door(), 0, 2)
    same = await ledger.change_sale(sale.id, SaleChange(door=Door()))
    assert same == changed, "nothing to change"


async def test_early_access_cannot_change_once_somebody_may_have_used_it(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    with pytest.raises(NotPossible, match="has begun"):
        await ledger.change_sale(sale.id, SaleChange(door=Door()))
    later = Door(audience=Audience(groups=("silver",), early=DOOR.audience.early))
    changed = await ledger.change_sale(sale.id, SaleChange(door=later))
    assert changed is not None
    assert changed.door == later, "the rest can"


async def test_a_list_is_replaced_as_a_whole(ledger: SqlLedger) -> None:
    sale, other = await make_sale(ledger), await make_sale(ledger)
    first, second = digests("a", 2 * PART_DIGESTS + 7), digests("b", PART_DIGESTS)
    assert (await ledger.audience.read_list(sale.id)) == (0, array("q"))
    known = await ledger.audience.replace_list(sale.id, first)
    assert known is not None
    assert known.list_buyers == len(first)
    version, found = await ledger.audience.read_list(sale.id)
    assert (version, found) == (known.list_version, first)
    again = await ledger.audience.replace_list(sale.id, second)
    assert again is not None
    assert again.list_version > version
    assert await ledger.audience.read_list(sale.id) == (again.list_version, second)
    assert (await ledger.audience.read_list(other.id))[1] == array("q"), "the other sale has none"
    assert await ledger.audience.replace_list(999_999, second) is None


async def test_one_buyer_is_found_wherever_they_stand(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    listed = digests("a", 2 * PART_DIGESTS + 7)
    await ledger.audience.replace_list(sale.id, listed)
    for place in (0, 1, PART_DIGESTS - 1, PART_DIGESTS, len(listed) - 1):
        assert await ledger.audience.is_listed(sale.id, listed[place])
        assert not await ledger.audience.is_listed(sale.id, listed[place] + 1)
    assert not await ledger.audience.is_listed(sale.id, listed[0] - 1)
    assert not await ledger.audience.is_listed(sale.id + 1000, listed[0])


async def test_nobody_reads_half_of_one_list_and_half_of_another(ledger: SqlLedger, ledger_url: str) -> None:
    sale = await make_sale(ledger)
    lists = [digests("a", 3 * PART_DIGESTS), digests("b", 3 * PART_DIGESTS)]
    await ledger.audience.replace_list(sale.id, lists[0])
    other = open_ledger(ledger_url)
    read = 0
    try:
        replacing = asyncio.create_task(_replace(other, sale, lists))
        while not replacing.done():
            _, found = await ledger.audience.read_list(sale.id)
            assert found in lists
            read += 1
        await replacing
    finally:
        await other.close()
    assert read > 1


async def _replace(ledger: SqlLedger, sale: Sale, lists: "list[array[int]]") -> None:
    for turn in range(10):
        await ledger.audience.replace_list(sale.id, lists[turn % 2])
        await asyncio.sleep(0)
