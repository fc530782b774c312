"""Codes: uploaded all or nothing, given once with each paid unit, taken back, redeemed once; on every database."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from sqlalchemy import select, update

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql import voucher_gifts as gifts_module
from seckill.backends.sql import vouchers as vouchers_module
from seckill.backends.sql.tables import orders, rounds, sales, voucher_uploads, vouchers
from seckill.domain.admission import Admission
from seckill.domain.event import EventType
from seckill.domain.item import NO_ITEM, ItemChange, ItemDraft
from seckill.domain.order import OrderState
from seckill.domain.payment_fate import Fate
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import Round, Sale, SaleChange
from seckill.domain.voucher import CodeCount, VoucherState
from seckill.errors import CodesMissing, LedgerRefused, UploadGivenUp
from seckill.ports.feed import EventFilter, FeedPage
from seckill.ports.order_action import ActionOutcome
from seckill.ports.payment import Settlement
from seckill.ports.vouchers import Clash, ClashKind, RedeemOutcome
from tests.backends.sql.looking import rows, write
from tests.backends.sql.making import HOUR_MS, admission, draft
from tests.backends.sql.paying import capture, make_late, refunding
from tests.patience import PATIENCE_S


def codes(count: int, prefix: str = "C") -> list[str]:
    return [f"{prefix}-{place}" for place in range(1, count + 1)]


def lines(wanted: Iterable[str]) -> list[tuple[int, str]]:
    return list(enumerate(wanted, 1))


async def make_sale(ledger: SqlLedger, units: int = 5, pool: Sequence[str] | None = None, **facts: Any) -> Sale:
    """Makes a sale with as many codes as units, unless told otherwise."""
    wanted = {"price_cents": 0, "limit_per_buyer": 9, "vouchers": True} | facts
    sale = await ledger.create_sale(draft(units=units, **wanted), lane=2)
    await upload(ledger, sale, codes(units, f"S{sale.id}") if pool is None else pool)
    known = await ledger.sale(sale.id)
    assert known is not None
    return known


async def upload(ledger: SqlLedger, sale: Sale, wanted: Sequence[str], item: int = NO_ITEM) -> None:
    if wanted:
        upload_id = await ledger.vouchers.begin_upload(sale.id, item)
        assert await ledger.vouchers.add_codes(upload_id, lines(wanted)) == ()
        await ledger.vouchers.complete_upload(upload_id)


async def record(ledger: SqlLedger, round_: Round, *counters: int, quantity: int = 1) -> list[Admission]:
    made = [admission(round_, counter, quantity=quantity) for counter in counters]
    await ledger.record(made)
    return made


async def codes_of(ledger: SqlLedger, made: Admission) -> list[str]:
    """Returns the order's codes from the table, without marking them as shown."""
    found = select(vouchers.c.code).where(vouchers.c.order_id == int(made.number), vouchers.c.void_ms.is_(None))
    return [row.code for row in await rows(ledger, found.order_by(vouchers.c.id))]


async def check_gifts(ledger: SqlLedger) -> None:
    """Each unit that is paid and sold has one code, and no other has any."""
    given = select(vouchers.c.order_id).where(vouchers.c.order_id.is_not(None), vouchers.c.void_ms.is_(None))
    had = Counter(row.order_id for row in await rows(ledger, given))
    paid = select(orders.c.id, orders.c.quantity).where(orders.c.state == "paid", orders.c.active_slot.is_not(None))
    assert had == {row.id: row.quantity for row in await rows(ledger, paid)}


async def told(ledger: SqlLedger, *types: EventType) -> list[dict[str, Any]]:
    while await ledger.feed.line_up():
        pass
    page = await ledger.feed.read(None, EventFilter(types=frozenset(types)), 100)
    assert isinstance(page, FeedPage)
    return [dict(event.facts) for event in page.events]


async def test_a_free_order_has_its_codes_with_its_row(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=6)
    one, two = await record(ledger, sale.round, 1, 2, quantity=2)
    [three] = await record(ledger, sale.round, 3)
    assert [await codes_of(ledger, each) for each in (one, two, three)] == [
        [f"S{sale.id}-1", f"S{sale.id}-2"],
        [f"S{sale.id}-3", f"S{sale.id}-4"],
        [f"S{sale.id}-5"],
    ]
    await check_gifts(ledger)
    given = await told(ledger, EventType.VOUCHER_GIVEN)
    assert given == [
        {"order_number": int(each.number), "buyer": each.user, "codes": each.quantity} for each in (one, two, three)
    ]


async def test_a_batch_that_is_written_twice_takes_no_codes_twice(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    made = await record(ledger, sale.round, 1, 2)
    before = [await codes_of(ledger, each) for each in made]
    await ledger.record([*made, admission(sale.round, 3)])
    assert [await codes_of(ledger, each) for each in made] == before
    assert (await ledger.vouchers.pool(sale.id)).free == 2
    await check_gifts(ledger)


async def test_sales_without_codes_and_with_them_in_one_batch(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    plain = await ledger.create_sale(draft(price_cents=0), lane=2)
    await ledger.record([admission(sale.round, 1), admission(plain.round, 2)])
    await check_gifts_of(ledger, sale, 1)


async def check_gifts_of(ledger: SqlLedger, sale: Sale, given: int) -> None:
    pool = await ledger.vouchers.pool(sale.id)
    assert (pool.given, pool.free) == (given, pool.codes - given)


@pytest.mark.parametrize("way", ["sandbox", "callback", "late"])
async def test_a_code_is_given_with_every_way_of_being_paid(ledger: SqlLedger, way: str) -> None:
    sale = await make_sale(ledger, price_cents=500)
    [made] = await record(ledger, sale.round, 1)
    assert await codes_of(ledger, made) == []
    if way == "sandbox":
        await ledger.pay(made.number, made.user, capture())
    elif way == "callback":
        assert (await ledger.payments.capture(made.number, capture(), 5)).fate is Fate.SETTLED
        assert not (await ledger.payments.capture(made.number, capture(), 5)).new  # the provider says it again
    else:
        late = await make_late(ledger, made)
        [made] = await record(ledger, sale.round, 2)
        assert await ledger.payments.settle(late, made.number) is Settlement.DONE
    assert await codes_of(ledger, made) == [f"S{sale.id}-1"]
    await check_gifts(ledger)


async def test_whoever_dies_in_between_has_neither_paid_nor_taken_a_code(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = await make_sale(ledger, price_cents=500)
    [made] = await record(ledger, sale.round, 1)
    reached = []

    def die(name: str) -> None:
        reached.append(name)
        raise RuntimeError(name)

    with monkeypatch.context() as patch:
        patch.setattr(gifts_module, "reached", die)
        with pytest.raises(RuntimeError):
            await ledger.pay(made.number, made.user, capture())
    assert reached == ["ledger.give.inside"]
    order = await ledger.order(made.number)
    assert order is not None
    assert order.state is OrderState.UNPAID
    await check_gifts(ledger)
    assert (await ledger.vouchers.pool(sale.id)).free == 5


async def test_a_returned_unit_takes_a_code_back_that_nobody_has_seen(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=2, pool=["a", "b", "spare"])
    unseen, seen = await record(ledger, sale.round, 1, 2)
    shown = await ledger.vouchers.show([seen.number])
    assert [each.code for each in shown[seen.number]] == ["b"]
    for made in (unseen, seen):
        acted = await ledger.actions.act(refunding(made, back=True))
        assert acted is not None
        assert acted.outcome is ActionOutcome.DONE
    states = {code: voucher.state for code in "ab" if (voucher := await ledger.vouchers.voucher(code))}
    assert states == {"a": VoucherState.FREE, "b": VoucherState.VOID}
    await check_gifts(ledger)
    one, two = await record(ledger, sale.round, 3, 4)
    assert [await codes_of(ledger, each) for each in (one, two)] == [["a"], ["spare"]]
    assert [(each["void"], each["returned"]) for each in await told(ledger, EventType.VOUCHER_VOIDED)] == [
        (0, 1),
        (1, 0),
    ]


async def test_a_unit_without_a_code_does_not_go_back_on_sale(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=2)
    [made] = await record(ledger, sale.round, 1)
    await ledger.vouchers.show([made.number])
    refused = await ledger.actions.act(refunding(made, back=True))
    assert refused is not None
    assert (refused.outcome, refused.order.state) == (ActionOutcome.OUT_OF_CODES, OrderState.PAID)
    assert len(await codes_of(ledger, made)) == 1
    kept = await ledger.actions.act(refunding(made, back=False))
    assert kept is not None
    assert kept.outcome is ActionOutcome.DONE
    await check_gifts(ledger)
    await upload(ledger, sale, ["more"])
    [other] = await record(ledger, sale.round, 2)
    await ledger.vouchers.show([other.number])
    done = await ledger.actions.act(refunding(other, back=True))
    assert done is not None
    assert done.outcome is ActionOutcome.DONE
    await check_gifts(ledger)


async def test_a_part_of_the_money_back_leaves_the_code_alone(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, price_cents=500, pool=codes(9))
    [made] = await record(ledger, sale.round, 1)
    await ledger.payments.capture(made.number, capture(), 5)
    await ledger.actions.act(refunding(made, 100, back=False))
    assert len(await codes_of(ledger, made)) == 1
    await ledger.actions.act(refunding(made, 100, back=True))
    assert await codes_of(ledger, made) == []
    await check_gifts(ledger)


async def test_a_code_is_redeemed_once(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, pool=[*codes(5), "A b/%ü", "a b/%ü"])
    [made] = await record(ledger, sale.round, 1)
    [code] = await codes_of(ledger, made)
    outcomes = [(await ledger.vouchers.redeem(each)).outcome for each in (code, code, "C-2", "nothing", code.lower())]
    assert outcomes == [
        RedeemOutcome.DONE,
        RedeemOutcome.REDEEMED,
        RedeemOutcome.NOT_GIVEN,
        RedeemOutcome.UNKNOWN,
        RedeemOutcome.UNKNOWN,
    ]
    await ledger.actions.act(refunding(made, back=False))
    assert (await ledger.vouchers.redeem(code)).outcome is RedeemOutcome.VOID
    [event] = await told(ledger, EventType.VOUCHER_REDEEMED)
    assert event["order_number"] == int(made.number)
    assert code not in str(await told(ledger, *EventType))


async def test_fifty_who_redeem_one_code_at_once(ledger: SqlLedger, ledger_url: str) -> None:
    sale = await make_sale(ledger)
    [made] = await record(ledger, sale.round, 1)
    [code] = await codes_of(ledger, made)
    others = [open_ledger(ledger_url) for _ in range(3)]
    tills = [ledger, *others]
    try:
        results = await asyncio.gather(*[tills[place % 4].vouchers.redeem(code) for place in range(50)])
    finally:
        for other in others:
            await other.close()
    assert Counter(result.outcome for result in results) == {RedeemOutcome.DONE: 1, RedeemOutcome.REDEEMED: 49}


async def test_control_a_till_that_looks_first_and_redeems_then(ledger: SqlLedger) -> None:
    """Without the condition in the change itself, several tills take the same code."""
    sale = await make_sale(ledger)
    [made] = await record(ledger, sale.round, 1)
    [code] = await codes_of(ledger, made)
    everybody_has_looked = asyncio.Barrier(20)

    async def redeem() -> bool:
        voucher = await ledger.vouchers.voucher(code)
        await everybody_has_looked.wait()
        if voucher is None or voucher.redeemed_ms is not None:
            return False
        await write(ledger, update(vouchers).where(vouchers.c.code == code).values(redeemed_ms=1))
        return True

    assert sum(await asyncio.gather(*[redeem() for _ in range(20)])) > 1


PAYERS = 60


async def test_many_pay_at_once_and_each_unit_has_its_own_code(ledger: SqlLedger, ledger_url: str) -> None:
    """Over several processes' connections, down to the last code."""
    sale = await make_sale(ledger, units=2 * PAYERS, price_cents=500, limit_per_buyer=2)
    made = await record(ledger, sale.round, *range(1, PAYERS + 1), quantity=2)
    others = [open_ledger(ledger_url) for _ in range(3)]
    nodes = [ledger, *others]

    async def pay(place: int) -> None:
        paid = await nodes[place % 4].pay(made[place].number, made[place].user, capture(f"p{place}", cents=1000))
        assert paid is not None
        assert paid.done

    try:
        await asyncio.gather(*map(pay, range(PAYERS)))
    finally:
        for other in others:
            await other.close()
    await check_gifts(ledger)
    assert (await ledger.vouchers.pool(sale.id)).free == 0


async def test_who_pays_does_not_wait_for_others_who_take_codes(ledger: SqlLedger, ledger_url: str) -> None:
    """One has taken a code and has not committed. Another gets the next one and is done before that, also where the
    codes are few, and the planner would rather read them all than look one up."""
    if ledger_url.startswith("sqlite"):
        pytest.skip("SQLite has one writer")
    sale = await make_sale(ledger, units=40, price_cents=500)
    [made] = await record(ledger, sale.round, 1)
    free = select(vouchers.c.id).where(vouchers.c.order_id.is_(None)).order_by(vouchers.c.id).limit(1)
    async with ledger.database.writers.begin() as connection:
        taken = (await connection.scalars(free.with_for_update())).one()
        async with asyncio.timeout(PATIENCE_S):
            captured = await ledger.payments.capture(made.number, capture("p1", cents=500), 5)
    assert captured.fate is Fate.SETTLED
    [(given,)] = await rows(ledger, select(vouchers.c.id).where(vouchers.c.order_id == int(made.number)))
    assert given == taken + 1


async def test_control_takers_who_look_without_locking_take_the_same(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=20)
    everybody_has_looked = asyncio.Barrier(10)

    async def take() -> int:
        free = select(vouchers.c.id).where(vouchers.c.sale_id == sale.id, vouchers.c.order_id.is_(None))
        [(taken,)] = await rows(ledger, free.order_by(vouchers.c.id).limit(1))
        await everybody_has_looked.wait()
        return int(taken)

    assert len(set(await asyncio.gather(*[take() for _ in range(10)]))) < 10


# Items


async def make_item_sale(ledger: SqlLedger, *units: int) -> Sale:
    kinds = [ItemDraft(title=f"I{place}", units=each, price_cents=0) for place, each in enumerate(units)]
    wanted = draft(units=sum(units), price_cents=0, limit_per_buyer=9, vouchers=True, items=tuple(kinds))
    return await ledger.create_sale(wanted, lane=2)


async def test_an_item_takes_its_own_codes_first_and_then_those_for_any(ledger: SqlLedger) -> None:
    sale = await make_item_sale(ledger, 2, 2)
    small, large = (item.id for item in sale.items)
    await upload(ledger, sale, ["any-1", "any-2"])
    await upload(ledger, sale, ["large-1", "large-2"], item=large)
    known = await ledger.sale(sale.id)
    assert known is not None
    assert known.round.covered
    batch = [admission(sale.round, 1, item=large), admission(sale.round, 2, item=small)]
    await ledger.record([*batch, admission(sale.round, 3, item=large)])
    assert [await codes_of(ledger, each) for each in batch] == [["large-1"], ["any-1"]]
    last = admission(sale.round, 4, item=small)
    await ledger.record([last])
    assert await codes_of(ledger, last) == ["any-2"]
    await check_gifts(ledger)


async def test_what_one_item_has_too_many_is_of_no_use_to_another(ledger: SqlLedger) -> None:
    sale = await make_item_sale(ledger, 2, 2)
    small, large = (item.id for item in sale.items)
    await upload(ledger, sale, codes(9, "large"), item=large)
    await upload(ledger, sale, ["small-1"], item=small)
    pool = await ledger.vouchers.pool(sale.id)
    assert (pool.missing, pool.by_item) == (1, {small: CodeCount(1, 2), large: CodeCount(9, 2), 0: CodeCount(0, 0)})
    known = await ledger.sale(sale.id)
    assert known is not None
    assert not known.round.covered
    await upload(ledger, sale, ["small-2"], item=small)
    with pytest.raises(CodesMissing, match="1 codes are missing"):
        await ledger.change_sale(sale.id, SaleChange(items=(ItemChange(id=small, add_units=1),)))
    assert await ledger.change_sale(sale.id, SaleChange(items=(ItemChange(id=large, add_units=7),)))
    await ledger.record([admission(sale.round, each, item=small) for each in (1, 2)])
    await check_gifts(ledger)


async def test_an_item_whose_codes_have_gone_gets_none_of_anothers(ledger: SqlLedger) -> None:
    """However it came about: no order is written with a code that is for something else."""
    sale = await make_item_sale(ledger, 2, 2)
    small, large = (item.id for item in sale.items)
    await upload(ledger, sale, codes(9, "large"), item=large)
    with pytest.raises(LedgerRefused, match=f"has 0 free codes left for item {small}"):
        await ledger.record([admission(sale.round, 1, item=small)])
    assert await ledger.order(admission(sale.round, 1, item=small).number) is None


# A ledger that was restored from an older copy while processes ran on


@pytest.mark.parametrize("way", ["free", "paid for"])
async def test_a_number_that_means_another_round_by_now(ledger: SqlLedger, way: str) -> None:
    """It meant a round without codes, and then one of a sale that gives some."""
    price_cents = 0 if way == "free" else 500
    sale = await ledger.create_sale(draft(units=5, price_cents=price_cents, limit_per_buyer=9), lane=2)

    async def sell(counter: int) -> Admission:
        [made] = await record(ledger, sale.round, counter)
        if price_cents:
            await ledger.payments.capture(made.number, capture(f"p{counter}"), 5)
        return made

    before = await sell(1)
    await write(ledger, update(sales).values(vouchers=1))
    await upload(ledger, sale, codes(5))
    after = await sell(2)
    assert [await codes_of(ledger, each) for each in (before, after)] == [[], ["C-1"]]
    other = await make_sale(ledger, pool=codes(5, "other"), price_cents=price_cents)
    await write(ledger, update(rounds).where(rounds.c.id == sale.round.id).values(sale_id=other.id, ordinal=2))
    assert await codes_of(ledger, await sell(3)) == ["other-1"], "those of the sale whose round it is now"


# Uploads


async def clashes(ledger: SqlLedger, sale: Sale, *portions: Sequence[tuple[int, str]]) -> Sequence[Clash]:
    upload_id = await ledger.vouchers.begin_upload(sale.id)
    for portion in portions:
        if found := await ledger.vouchers.add_codes(upload_id, portion):
            await ledger.vouchers.give_up_upload(upload_id)
            return found
    raise AssertionError("nothing clashed")


async def test_a_code_twice_is_named_with_both_lines(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=2, pool=["known", "other"])
    assert await clashes(ledger, sale, [(1, "a"), (2, "b"), (3, "a")]) == [Clash(3, ClashKind.SAME_UPLOAD, 1)]
    assert await clashes(ledger, sale, [(1, "a")], [(2, "b"), (3, "a")]) == [Clash(3, ClashKind.SAME_UPLOAD, 1)]
    assert await clashes(ledger, sale, [(1, "a"), (2, "known")]) == [Clash(2, ClashKind.POOL)]
    another = await ledger.create_sale(draft(vouchers=True), lane=2)
    assert await clashes(ledger, another, [(1, "known")]) == [Clash(1, ClashKind.POOL)]
    assert (await ledger.vouchers.pool(sale.id)).codes == 2


async def test_nothing_of_an_upload_counts_before_it_is_complete(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=2, pool=())
    upload_id = await ledger.vouchers.begin_upload(sale.id)
    await ledger.vouchers.add_codes(upload_id, lines(["a", "b"]))
    assert (await ledger.vouchers.pool(sale.id)).codes == 0
    assert await ledger.vouchers.voucher("a") is None
    assert (await ledger.vouchers.redeem("a")).outcome is RedeemOutcome.UNKNOWN
    with pytest.raises(LedgerRefused, match="has 0 free codes"):
        await record(ledger, sale.round, 1)
    assert await ledger.order(admission(sale.round, 1).number) is None
    covered = await ledger.vouchers.complete_upload(upload_id)
    assert covered is not None
    assert covered.round.covered
    await record(ledger, sale.round, 1)
    await check_gifts(ledger)


async def test_what_is_left_of_an_upload_that_died_is_in_nobodys_way(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=2, pool=())
    dead = await ledger.vouchers.begin_upload(sale.id)
    await ledger.vouchers.add_codes(dead, lines(["a", "b", "c"]))
    again = await ledger.vouchers.begin_upload(sale.id)
    assert await ledger.vouchers.add_codes(again, [(1, "b")]) == [Clash(1, ClashKind.OTHER_UPLOAD)]
    await write(ledger, update(voucher_uploads).where(voucher_uploads.c.id == dead).values(touched_ms=1))
    assert await ledger.vouchers.clear_uploads(60, 1) == 1
    with pytest.raises(UploadGivenUp):
        await ledger.vouchers.complete_upload(dead)
    with pytest.raises(UploadGivenUp):
        await ledger.vouchers.add_codes(dead, [(4, "d")])
    assert await ledger.vouchers.add_codes(again, [(1, "b"), (2, "x")]) == ()
    while await ledger.vouchers.clear_uploads(60, 1):
        pass
    assert [row.id for row in await rows(ledger, select(voucher_uploads.c.id))] == [again]
    await ledger.vouchers.complete_upload(again)
    assert (await ledger.vouchers.pool(sale.id)).codes == 2


async def test_an_upload_that_dies_while_it_becomes_complete_is_not(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = await make_sale(ledger, units=2, pool=())
    upload_id = await ledger.vouchers.begin_upload(sale.id)
    await ledger.vouchers.add_codes(upload_id, lines(["a", "b"]))

    def die(name: str) -> None:
        raise RuntimeError(name)

    with monkeypatch.context() as patch:
        patch.setattr(vouchers_module, "reached", die)
        with pytest.raises(RuntimeError, match=r"complete_upload\.inside"):
            await ledger.vouchers.complete_upload(upload_id)
    pool = await ledger.vouchers.pool(sale.id)
    assert (pool.codes, pool.missing) == (0, 2)
    known = await ledger.sale(sale.id)
    assert known is not None
    assert not known.round.covered


# Enough codes for every unit


async def test_a_round_is_covered_when_there_is_a_code_for_each_unit(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=3, pool=["a", "b"])
    assert not sale.round.covered
    assert sale.round.gate_status == "paused"
    assert (await ledger.vouchers.pool(sale.id)).missing == 1
    with pytest.raises(CodesMissing, match="1 codes are missing"):
        await ledger.change_sale(sale.id, SaleChange(add_units=0, published=False), None) and await ledger.change_sale(
            sale.id, SaleChange(published=True)
        )
    await upload(ledger, sale, ["c"])
    known = await ledger.sale(sale.id)
    assert known is not None
    assert known.round.covered
    assert known.changed > sale.changed
    assert known.round.revision > sale.round.revision


async def test_no_more_units_than_codes(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, units=2, pool=["a", "b", "c"])
    await record(ledger, sale.round, 1)
    with pytest.raises(CodesMissing, match="1 codes are missing"):
        await ledger.change_sale(sale.id, SaleChange(add_units=2))
    changed = await ledger.change_sale(sale.id, SaleChange(add_units=1))
    assert changed is not None
    assert changed.round.total == 3
    await record(ledger, sale.round, 2, 3)
    await check_gifts(ledger)


async def test_each_round_needs_codes_of_its_own(ledger: SqlLedger) -> None:
    begins_ms = draft().begins_ms
    again = Recurrence(repeat="daily", timezone="UTC", begins_ms=begins_ms, window_ms=2 * HOUR_MS)
    sale = await make_sale(
        ledger, units=2, pool=codes(3), recurrence=again, begins_ms=begins_ms, ends_ms=begins_ms + 2 * HOUR_MS
    )
    assert sale.round.covered
    next_ms = begins_ms + 24 * HOUR_MS
    added = await ledger.add_round(sale.round, next_ms, next_ms + 2 * HOUR_MS, lane=2)
    assert added is not None
    assert not added.round.covered
    assert await ledger.vouchers.cover_rounds() == []
    # The first is over, and what it has not sold needs no codes any more.
    await record(ledger, sale.round, 1)
    await write(ledger, update(rounds).where(rounds.c.id == sale.round.id).values(begins_ms=1, ends_ms=2))
    [covered] = await ledger.vouchers.cover_rounds()
    assert covered.round.id == added.round.id
    assert covered.round.covered
    # Neither can the first be made longer now.
    with pytest.raises(CodesMissing):
        await ledger.change_sale(sale.id, SaleChange(ends_ms=begins_ms + 23 * HOUR_MS), sale.round.id)
    assert [each["ordinal"] for each in await told(ledger, EventType.ROUND_COVERED)] == [1, 2]


async def test_show_and_refund_at_once_never_give_a_seen_code_to_another(ledger: SqlLedger) -> None:
    """Whichever is first: what was shown is void, and what went back into the pool was not shown."""
    sale = await make_sale(ledger, units=20, pool=codes(40))
    made = await record(ledger, sale.round, *range(1, 21))

    async def race(each: Admission) -> tuple[list[str], bool]:
        shown, _ = await asyncio.gather(
            ledger.vouchers.show([each.number]), ledger.actions.act(refunding(each, back=True))
        )
        seen = [voucher.code for voucher in shown.get(each.number, ())]
        states = [await ledger.vouchers.voucher(code) for code in seen]
        return seen, all(state is not None and state.state is VoucherState.VOID for state in states)

    for _, right in await asyncio.gather(*map(race, made)):
        assert right
    await check_gifts(ledger)
