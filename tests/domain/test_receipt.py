"""Receipts: however many share a signature, each can be shown by itself, to a stranger."""

import pytest

from seckill.client.draw_check import Receipt
from seckill.domain.line import LineEntry
from seckill.domain.receipt import SHARED_BY, Receipts

RECEIPTS = Receipts(b"k" * 32)
KEY = RECEIPTS.public_key.hex()


def made(count: int) -> list[str]:
    entries = [LineEntry(id=i, round_id=7, user=f"user-{i}", quantity=1, joined_ms=1000 + i) for i in range(count)]
    return RECEIPTS.of(entries, [f"entry{i}" for i in range(count)])


@pytest.mark.parametrize("count", [1, 2, 3, 5, SHARED_BY - 1, SHARED_BY, SHARED_BY + 1, 3 * SHARED_BY + 7])
def test_each_receipt_holds_by_itself_and_for_its_own_entry_only(count: int) -> None:
    read = [Receipt.read(text) for text in made(count)]
    assert [(each.entry_id, each.joined_ms, each.round) for each in read] == [
        (f"entry{i}", 1000 + i, "7") for i in range(count)
    ]
    assert all(each.holds(KEY) for each in read)
    swapped = [
        Receipt(
            entry_id=other.entry_id,
            joined_ms=other.joined_ms,
            round=other.round,
            signature=each.signature,
            steps=each.steps,
        )
        for each, other in zip(read, [*read[1:], read[0]], strict=True)
        if each is not other
    ]
    assert not any(each.holds(KEY) for each in swapped)


def test_a_signature_is_shared_and_receipts_stay_short() -> None:
    read = [Receipt.read(text) for text in made(2 * SHARED_BY)]
    assert len({each.signature for each in read}) == 2
    assert {len(each.steps) for each in read} == {5}
    assert made(1) == [text for text in made(1) if text.count("-") == 1], "alone, it is signed as it is"


def test_what_is_signed_for_many_is_nobodys_receipt() -> None:
    """The hash that is signed cannot be passed off as an entry, nor a step left out."""
    for text in made(SHARED_BY):
        shorter = text.rpartition("-")[0]
        assert not Receipt.read(shorter).holds(KEY)
        assert not Receipt.read(f"{text}-l{'0' * 64}").holds(KEY)
