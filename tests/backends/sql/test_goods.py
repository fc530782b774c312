"""The goods of a sale, whether buyers may know of it, and announcements that are repeated."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import func, insert, select

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.tables import sale_keys, sales
from seckill.domain.goods import NO_GOODS, Goods
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import AnnounceKey, RoundStatus, SaleChange, SaleDraft
from seckill.errors import ExternalIdTaken
from tests.backends.sql.looking import rows
from tests.backends.sql.making import HOUR_MS, draft

CROWD = 8
EVERYTHING = Goods(
    external_id="货号 K-1",
    metadata='{"sku":"K-1"}',
    description="**Warm**\n\n- socks 🧦",
    images=("https://cdn.example.com/a.png", "https://cdn.example.com/b.png"),
    list_price_cents=1_000_000_000_000,
    terms_url="https://shop.example.com/terms",
    delivery="In two days",
    return_url="https://shop.example.com/",
)


def of(goods: Goods) -> SaleDraft:
    return replace(draft(), goods=goods)


async def test_goods_come_back_as_they_were(ledger: SqlLedger) -> None:
    made = await ledger.create_sale(of(EVERYTHING), lane=0)
    assert made.goods == EVERYTHING
    assert [sale.goods for sale in await ledger.sales()] == [EVERYTHING]
    assert (await ledger.create_sale(draft(), lane=0)).goods is NO_GOODS


async def test_a_change_touches_only_what_it_names(ledger: SqlLedger) -> None:
    made = await ledger.create_sale(of(EVERYTHING), lane=0)
    change = SaleChange(goods={"description": "", "images": (), "terms_url": None, "delivery": "Today"})
    changed = await ledger.change_sale(made.id, change)
    assert changed is not None
    assert changed.goods == replace(EVERYTHING, description="", images=(), terms_url=None, delivery="Today")
    assert changed.changed > made.changed, "every node reads it again"
    assert changed.round.revision == made.round.revision, "the gate has nothing to learn from it"


async def test_hiding_reaches_the_gate_with_the_next_revision(ledger: SqlLedger) -> None:
    made = await ledger.create_sale(replace(draft(), published=False), lane=0)
    assert (made.published, made.round.gate_status) == (False, RoundStatus.PAUSED)
    shown = await ledger.change_sale(made.id, SaleChange(published=True))
    assert shown is not None
    assert (shown.published, shown.round.gate_status, shown.round.revision) == (True, RoundStatus.OPEN, 2)
    again = await ledger.change_sale(made.id, SaleChange(published=True))
    assert again is not None
    assert again.round.revision == 2, "nothing to do"


async def test_a_hidden_sale_that_repeats_stays_hidden(ledger: SqlLedger) -> None:
    begins_ms = draft().begins_ms
    daily = Recurrence(repeat="daily", timezone="UTC", begins_ms=begins_ms, window_ms=HOUR_MS)
    made = await ledger.create_sale(
        replace(draft(begins_ms=begins_ms, ends_ms=begins_ms + HOUR_MS, recurrence=daily), published=False), lane=0
    )
    tomorrow = begins_ms + 24 * HOUR_MS
    following = await ledger.add_round(made.round, tomorrow, tomorrow + HOUR_MS, lane=0)
    assert following is not None
    assert not following.round.published
    await ledger.change_sale(made.id, SaleChange(published=True), made.round.id)
    newest = await ledger.sale(made.id)
    assert newest is not None
    assert newest.round.id == following.round.id
    assert newest.round.published, "the rounds that have been made already as well"


async def test_a_shops_id_is_of_one_sale_that_is_on_or_to_come(ledger: SqlLedger) -> None:
    first = await ledger.create_sale(of(Goods(external_id="K-1")), lane=0)
    with pytest.raises(ExternalIdTaken) as taken:
        await ledger.create_sale(of(Goods(external_id="K-1")), lane=0)
    assert taken.value.sale_id == first.id
    other = await ledger.create_sale(of(Goods(external_id="k-1")), lane=0)  # another text is another id
    with pytest.raises(ExternalIdTaken):
        await ledger.change_sale(other.id, SaleChange(goods={"external_id": "K-1"}))
    await ledger.change_sale(first.id, SaleChange(goods={"external_id": "K-1"}))  # its own
    await ledger.change_sale(first.id, SaleChange(status=RoundStatus.CLOSED))
    second = await ledger.create_sale(of(Goods(external_id="K-1")), lane=0)
    assert second.id > first.id


async def test_a_sale_that_goes_on_needs_its_id_again(ledger: SqlLedger) -> None:
    now_ms = draft().begins_ms + HOUR_MS
    over = await ledger.create_sale(
        replace(draft(begins_ms=now_ms - 2 * HOUR_MS, ends_ms=now_ms - HOUR_MS), goods=Goods(external_id="K-1")), lane=0
    )
    following = await ledger.create_sale(of(Goods(external_id="K-1")), lane=0)
    with pytest.raises(ExternalIdTaken) as taken:
        await ledger.change_sale(over.id, SaleChange(ends_ms=now_ms + HOUR_MS))
    assert taken.value.sale_id == following.id


async def test_the_same_announcement_again_is_the_same_sale(ledger: SqlLedger) -> None:
    key = AnnounceKey("a" * 64, "b" * 64)
    assert await ledger.announced(key) is None
    made = await ledger.announce(draft(), 0, key)
    again = await ledger.announce(draft(), 0, key)
    assert made.new
    assert not again.new
    assert made.sale is not None
    assert again.sale is not None
    assert made.sale.id == again.sale.id
    assert await ledger.announced(key) == again
    other = await ledger.announce(draft(title="Other"), 0, replace(key, body="c" * 64))
    assert (other.sale, other.new) == (None, False)
    assert await _sales(ledger) == 1


async def test_a_refused_announcement_does_not_take_its_key(ledger: SqlLedger) -> None:
    await ledger.create_sale(of(Goods(external_id="K-1")), lane=0)
    key = AnnounceKey("a" * 64, "b" * 64)
    with pytest.raises(ExternalIdTaken):
        await ledger.announce(of(Goods(external_id="K-1")), 0, key)
    assert await ledger.announced(key) is None


async def test_control_looking_first_announces_twice(ledger: SqlLedger) -> None:
    """The same crowd against code that looks for the key and then creates the sale, without the lock in between."""
    key, everybody_has_looked = AnnounceKey("a" * 64, "b" * 64), asyncio.Barrier(CROWD)

    async def naive() -> None:
        known = await ledger.announced(key)
        await everybody_has_looked.wait()
        if known is None:
            await ledger.create_sale(draft(), lane=0)

    await asyncio.gather(*(naive() for _ in range(CROWD)))
    assert await _sales(ledger) > 1


async def test_however_many_announce_at_once_there_is_one_sale(ledger: SqlLedger, ledger_url: str) -> None:
    """Over two nodes, each with connections of its own, several keys at a time."""
    other = open_ledger(ledger_url)
    try:
        for number in range(5):
            key = AnnounceKey(f"{number}" * 64, "b" * 64)
            told = await asyncio.gather(
                *[(ledger, other)[copy % 2].announce(draft(), 0, key) for copy in range(CROWD)],
                *[(ledger, other)[copy % 2].announce(draft(), 0, replace(key, body="c" * 64)) for copy in range(2)],
            )
            made = {each.sale.id for each in told if each.sale is not None}
            assert len(made) == 1
            assert [each.new for each in told].count(True) == 1
            assert await _sales(ledger) == number + 1
    finally:
        await other.close()


async def test_a_key_stands_for_one_sale_whatever_the_code_does(ledger: SqlLedger) -> None:
    made = await ledger.announce(draft(), 0, AnnounceKey("a" * 64, "b" * 64))
    assert made.sale is not None
    row = {"key_digest": "a" * 64, "body_digest": "x", "sale_id": made.sale.id, "created_ms": 1}
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        async with ledger.database.writers.begin() as connection:
            await connection.execute(insert(sale_keys).values(**row))


async def _sales(ledger: SqlLedger) -> int:
    [(number,)] = await rows(ledger, select(func.count()).select_from(sales))
    return int(number)
