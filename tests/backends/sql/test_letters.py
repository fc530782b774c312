"""Entries that cannot be written: kept, tried again, given up; on every database."""

import asyncio
import json
import re

import pytest
from msgspec import structs

from seckill.backends.sql import SqlLedger
from seckill.domain.admission import Admission
from seckill.domain.dead_letter import LetterState
from seckill.domain.order import OrderState
from seckill.domain.sale import Round
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.errors import NotPossible
from seckill.ports.queue_entry import read_entry, write_entry
from seckill.ports.transport import Delivery
from tests.backends.sql.making import admission, draft
from tests.patience import PATIENCE_S

DELAYS_S = (0.0, 0.0, 0.0)


def payload(made: Admission) -> str:
    return json.dumps(
        {
            "v": 1,
            "round": made.round_id,
            "epoch": made.epoch,
            "lane": made.number.lane,
            "seconds": made.number.seconds,
            "at_ms": made.admitted_ms,
            "counter": made.number.counter,
            "quantity": made.quantity,
            "slot": made.slot,
            "user": made.user,
            "request": made.request_id,
        }
    )


def delivery(made: Admission, entry_id: str = "1-1") -> Delivery:
    return Delivery(made.number.lane, entry_id, payload(made).encode(), made)


async def clash(ledger: SqlLedger) -> tuple[Round, Admission]:
    """An admission that the ledger refuses: another order has the buyer's slot."""
    sale = await ledger.create_sale(draft(units=10), lane=0)
    await ledger.record([admission(sale.round, 1, user="ann")])
    return sale.round, admission(sale.round, 2, user="ann")


async def retry_all(failures: DeadLetterDesk) -> int:
    tries = 0
    while found := await failures.retry_due():
        tries += found
    return tries


async def test_after_the_last_try_it_is_failed_released_and_dead(ledger: SqlLedger) -> None:
    """It is tried again after each delay, then buried: a `failed` row, a release, a dead letter (F15, M15, M17)."""
    round_, bad = await clash(ledger)
    failures = DeadLetterDesk(ledger, Alarm(""), DELAYS_S)
    await ledger.set_aside(delivery(bad), "taken", 0)
    await ledger.set_aside(delivery(bad), "taken", 0)  # delivered again: one letter
    assert await retry_all(failures) == 3
    (letter,) = await ledger.letters(LetterState.DEAD, 10)
    assert (letter.number, letter.attempts, len(letter.history)) == (bad.number, 4, 4)
    order = await ledger.order(bad.number)
    assert order is not None
    assert order.state is OrderState.FAILED
    (item,) = await ledger.outbox(10)
    assert item.release is not None
    assert (item.number, item.state, item.ref) == (bad.number, OrderState.FAILED, round_.ref)
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert (tally.sold, tally.recorded, tally.ended) == (1, 2, 1)
    assert await failures.retry_due() == 0


async def test_what_is_given_up_keeps_what_the_shop_said(ledger: SqlLedger) -> None:
    _, refused = await clash(ledger)
    refused = structs.replace(refused, metadata='{"size":"L"}')
    await ledger.set_aside(Delivery(0, "1-1", write_entry(refused), refused), "refused", 0.0)
    [letter] = await ledger.letters_due(10)
    read = read_entry(0, letter.entry_id, letter.payload.encode()).admission
    assert read == refused
    assert await ledger.bury(letter, read, "given up") is OrderState.FAILED
    order = await ledger.order(refused.number)
    assert order is not None
    assert order.metadata == refused.metadata


async def test_the_tombstone_wins_against_a_late_commit(ledger: SqlLedger) -> None:
    """The worker that was given up for dead writes it after all (F64)."""
    round_, bad = await clash(ledger)
    await ledger.set_aside(delivery(bad), "taken", 0)
    await retry_all(DeadLetterDesk(ledger, Alarm(""), DELAYS_S))
    await ledger.cancel(admission(round_, 1).number, "ann")  # what stood against it is gone
    late = await ledger.record([bad])
    assert (late.new, late.repeated, late.states) == (0, 1, {"failed": [int(bad.number)]})
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert tally.sold == 0


async def test_what_was_given_up_and_is_of_an_earlier_epoch_is_told_apart(ledger: SqlLedger) -> None:
    """A rebuilt gate may know nothing of such orders only; those that were written, it has from the rows."""
    round_, bad = await clash(ledger)
    await ledger.set_aside(delivery(bad), "taken", 0)
    await retry_all(DeadLetterDesk(ledger, Alarm(""), DELAYS_S))
    await ledger.cancel(admission(round_, 1).number, "ann")
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert tally.voided == 0
    assert await ledger.voided(round_.id) == {}
    assert await ledger.next_epoch(round_) is not None
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert (tally.recorded, tally.ended, tally.voided) == (2, 2, 1)
    voided = await ledger.voided(round_.id)
    assert [(user, order.number, order.live) for user, mine in voided.items() for order in mine] == [
        ("ann", bad.number, False)
    ]


async def test_a_commit_that_was_quicker_is_not_failed(ledger: SqlLedger) -> None:
    """Released although it is sold would be the worst of all (F64)."""
    round_, bad = await clash(ledger)
    await ledger.set_aside(delivery(bad), "taken", 0)
    (letter,) = await ledger.letters_due(10)
    await ledger.cancel(admission(round_, 1).number, "ann")
    await ledger.record([bad])
    assert await ledger.bury(letter, bad, "too late") is OrderState.UNPAID
    assert await ledger.letters(LetterState.DEAD, 10) == []
    assert [item.number for item in await ledger.outbox(10)] == [admission(round_, 1).number]


async def test_a_later_try_may_work(ledger: SqlLedger) -> None:
    round_, bad = await clash(ledger)
    failures = DeadLetterDesk(ledger, Alarm(""), DELAYS_S)
    await ledger.set_aside(delivery(bad), "taken", 0)
    assert await failures.retry_due() == 1
    await ledger.cancel(admission(round_, 1).number, "ann")
    assert await failures.retry_due() == 1
    order = await ledger.order(bad.number)
    assert order is not None
    assert order.state is OrderState.UNPAID
    assert await failures.retry_due() == 0
    assert await ledger.letters(LetterState.DEAD, 10) == []


async def test_what_cannot_be_read_goes_the_same_way(ledger: SqlLedger) -> None:
    failures = DeadLetterDesk(ledger, Alarm(""), DELAYS_S)
    await ledger.set_aside(Delivery(3, "7-7", b"{not json\0", None, "cannot be read"), "cannot be read", 0)
    assert await retry_all(failures) == 3
    (letter,) = await ledger.letters(LetterState.DEAD, 10)
    assert (letter.number, letter.entry_id) == (None, "7-7")
    assert await ledger.outbox(10) == []
    with pytest.raises(NotPossible, match="cannot be written"):
        await failures.replay(letter.id)
    await failures.discard(letter.id)
    assert await ledger.letters(LetterState.DEAD, 10) == []
    with pytest.raises(NotPossible, match="discarded"):
        await failures.discard(letter.id)


async def test_a_letter_that_not_even_a_failed_row_can_be_written_for(ledger: SqlLedger) -> None:
    """PostgreSQL keeps no NUL in a text, so the tombstone is refused as well: it holds up no other letter."""
    sale = await ledger.create_sale(draft(units=10), lane=0)
    bad, good = admission(sale.round, 1, user="a\0b"), admission(sale.round, 2)
    await ledger.set_aside(delivery(bad, "1-1"), "refused", 0)
    failures = DeadLetterDesk(ledger, Alarm(""), ())  # no second try: it is given up at once
    await ledger.set_aside(delivery(good, "2-2"), "refused", 0)
    assert await failures.retry_due() == 2
    (letter,) = await ledger.letters(LetterState.DEAD, 10)
    assert (letter.entry_id, letter.next_ms) == ("1-1", None)
    order = await ledger.order(good.number)
    assert order is not None
    assert order.state is OrderState.UNPAID
    assert await failures.retry_due() == 0


async def test_an_order_that_is_over_is_not_replayed(ledger: SqlLedger) -> None:
    _, bad = await clash(ledger)
    failures = DeadLetterDesk(ledger, Alarm(""), DELAYS_S)
    await ledger.set_aside(delivery(bad), "taken", 0)
    await retry_all(failures)
    (letter,) = await ledger.letters(LetterState.DEAD, 10)
    with pytest.raises(NotPossible, match="is failed already"):
        await failures.replay(letter.id)
    with pytest.raises(NotPossible, match="no dead letter 999"):
        await failures.replay(999)


async def test_tries_wait_for_their_time(ledger: SqlLedger) -> None:
    _, bad = await clash(ledger)
    await ledger.set_aside(delivery(bad), "taken", 3600)
    assert await ledger.letters_due(10) == []
    failures = DeadLetterDesk(ledger, Alarm(""), (0, 3600))
    await ledger.set_aside(delivery(bad, "2-2"), "taken", 0)
    assert await failures.retry_due() == 1
    assert await failures.retry_due() == 0, "the second try is an hour away"


async def test_two_keepers_with_the_same_letter_count_one_try(ledger: SqlLedger) -> None:
    _, bad = await clash(ledger)
    await ledger.set_aside(delivery(bad), "taken", 0)
    (letter,) = await ledger.letters_due(10)
    assert await ledger.put_off(letter, "again", 0)
    assert not await ledger.put_off(letter, "again", 0)
    (after,) = await ledger.letters_due(10)
    assert (after.attempts, len(after.history)) == (2, 2)


async def test_people_are_told_once(ledger: SqlLedger) -> None:
    """They are told by a real POST to a real address; one that does not answer holds up nothing."""
    _, bad = await clash(ledger)
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
        heard.append(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await ledger.set_aside(delivery(bad), "taken", 0)
    alarm = Alarm(f"http://127.0.0.1:{port}/alarm")
    await retry_all(DeadLetterDesk(ledger, alarm, DELAYS_S))
    await alarm.drain(PATIENCE_S)
    server.close()
    await server.wait_closed()
    (told,) = map(json.loads, heard)
    assert (told["alarm"], told["order"]) == ("an order has failed for good", int(bad.number))
    await ledger.set_aside(Delivery(0, "2-2", b"{", None, "cannot be read"), "cannot be read", 0)
    alarm = Alarm(f"http://127.0.0.1:{port}/nobody")
    await retry_all(DeadLetterDesk(ledger, alarm, DELAYS_S))
    assert len(await ledger.letters(LetterState.DEAD, 10)) == 2
    await alarm.drain(0.0)
