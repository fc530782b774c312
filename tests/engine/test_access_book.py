"""A process knows keys and buyers by heart, and notices when it can no longer trust that."""

from collections.abc import Sequence
from dataclasses import replace

from seckill.domain.operator import Operator, Role
from seckill.domain.operator_key import OperatorKey, digest_of, key_id_in, new_key
from seckill.engine.access.access_book import EFFECTIVE_WITHIN_S, LOOK_AGAIN_S, AccessBook, NoOperator
from seckill.ports.access import EVERYBODY, AccessChanges, BuyerStanding

KEY_ID, KEY = new_key()
KNOWN = OperatorKey(
    id=KEY_ID, name="li", role=Role.VIEWER, digest=digest_of(KEY), created_ms=0, created_by="root", expires_ms=5000
)


class Changes:
    """The one question that a book asks."""

    def __init__(self) -> None:
        self.version = 0
        self.keys: Sequence[OperatorKey] = (KNOWN,)
        self.buyers: Sequence[BuyerStanding] = ()

    async def changes(self, after: int) -> AccessChanges | None:
        return AccessChanges(self.version, self.keys, self.buyers) if self.version > after else None


class Times:
    def __init__(self) -> None:
        self.monotonic_s, self.now_ms = 100.0, 1000


def book_of(ledger: Changes, times: Times) -> AccessBook:
    return AccessBook(ledger, lambda: times.now_ms, lambda: times.monotonic_s)


async def test_a_key_until_its_end() -> None:
    ledger, times = Changes(), Times()
    book = book_of(ledger, times)
    await book.refresh()
    assert await book.operator(KEY) == Operator(name="li", role=Role.VIEWER)
    times.now_ms = 5000
    assert await book.operator(KEY) is NoOperator.EXPIRED
    ledger.version, ledger.keys = 1, (replace(KNOWN, revoked_ms=1),)
    await book.refresh()
    assert await book.operator(KEY) is NoOperator.REVOKED
    for wrong in (new_key()[1], KEY[:-1], f"{KEY[:-1]}{'a' if KEY[-1] != 'a' else 'b'}", "", "sko__", KEY_ID):
        assert await book.operator(wrong) is NoOperator.WRONG
    assert key_id_in(KEY) == KEY_ID


async def test_a_key_that_another_process_has_made_opens_at_once() -> None:
    ledger, times = Changes(), Times()
    ledger.keys = ()
    book = book_of(ledger, times)
    await book.refresh()
    ledger.version, ledger.keys = 1, (KNOWN,)
    times.monotonic_s += 2 * LOOK_AGAIN_S
    assert await book.operator(KEY) == Operator(name="li", role=Role.VIEWER)


async def test_made_up_keys_cost_few_looks() -> None:
    ledger, times = Changes(), Times()
    book = book_of(ledger, times)
    await book.refresh()
    ledger.version, ledger.keys = 1, ()
    for _ in range(100):
        assert await book.operator(new_key()[1]) is NoOperator.WRONG
    assert isinstance(await book.operator(KEY), Operator), "it has not looked again"


async def test_a_process_that_cannot_read_the_ledger_trusts_no_named_key() -> None:
    ledger, times = Changes(), Times()
    book = book_of(ledger, times)
    assert await book.operator(KEY) is NoOperator.NOT_KNOWN
    await book.refresh()
    times.monotonic_s += EFFECTIVE_WITHIN_S
    assert isinstance(await book.operator(KEY), Operator)
    times.monotonic_s += 0.1
    assert await book.operator(KEY) is NoOperator.NOT_KNOWN
    await book.refresh()  # nothing is new, and that is known now
    assert isinstance(await book.operator(KEY), Operator)


async def test_what_is_known_of_buyers() -> None:
    ledger, times = Changes(), Times()
    book = book_of(ledger, times)
    barred = book.barred
    assert (barred.active, barred.blocks("ann"), barred.has_ended("ann", 9.0)) == (True, None, None)
    await book.refresh()
    assert (barred.active, barred.blocks("ann"), barred.has_ended("ann", 9.0)) == (False, False, False)
    ledger.version, ledger.buyers = 1, (BuyerStanding(user="ann", blocked_ms=1, tokens_before_s=10),)
    await book.refresh()
    assert (barred.active, barred.blocks("ann"), barred.blocks("bob")) == (True, True, False)
    assert (barred.has_ended("ann", 9.9), barred.has_ended("ann", 10.0)) == (True, False)
    assert barred.has_ended("bob", 0.0) is False
    ledger.version, ledger.buyers = 2, (BuyerStanding(user="ann", tokens_before_s=10),)
    await book.refresh()
    assert barred.blocks("ann") is False
    assert barred.has_ended("ann", 9.9) is True, "unblocking brings no token back"
    ledger.version, ledger.buyers = 3, (BuyerStanding(user=EVERYBODY, tokens_before_s=20),)
    await book.refresh()
    assert (barred.has_ended("bob", 19.0), barred.has_ended("ann", 19.0), barred.has_ended("bob", 20.0)) == (
        True,
        True,
        False,
    )
