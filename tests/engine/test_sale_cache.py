"""Which of a sale's rounds buyers mean, and what a node keeps of them."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from seckill.domain.current_round import AFTERGLOW_MS, current
from seckill.domain.public_id import PublicIds
from seckill.domain.sale import RoundStatus, Sale
from seckill.engine.sale_cache import ROUNDS_KEPT, SaleCache
from seckill.errors import GateUnavailable
from tests.making import make_round

SECOND_MS = 1000


def versions(*windows: tuple[int, int], closed: int | None = None, changed: int = 1) -> tuple[Sale, ...]:
    """A sale with rounds in these windows, in seconds."""
    return tuple(
        Sale(
            id=1,
            title="Socks",
            price_cents=1,
            currency="CNY",
            pay_within_s=900,
            created_ms=0,
            changed=changed,
            round=make_round(
                id=100 + ordinal,
                ordinal=ordinal,
                begins_ms=begins_s * SECOND_MS,
                ends_ms=ends_s * SECOND_MS,
                status=RoundStatus.CLOSED if closed is not None and ordinal >= closed else RoundStatus.OPEN,
            ),
        )
        for ordinal, (begins_s, ends_s) in enumerate(windows, start=1)
    )


@pytest.mark.parametrize(
    ("windows", "closed", "now_s", "ordinal"),
    [
        # one alone, whatever the time
        ([(100, 200)], None, 50, 1),
        ([(100, 200)], None, 150, 1),
        ([(100, 200)], None, 999, 1),
        # before the first, in it, just over, well over, in the next, after the last
        ([(100, 200), (500, 600)], None, 50, 1),
        ([(100, 200), (500, 600)], None, 100, 1),
        ([(100, 200), (500, 600)], None, 200, 1),
        ([(100, 200), (500, 600)], None, 229, 1),
        ([(100, 200), (500, 600)], None, 230, 2),
        ([(100, 200), (500, 600)], None, 500, 2),
        ([(100, 200), (500, 600)], None, 999, 2),
        # one after the other without a pause, and with a short one
        ([(100, 200), (200, 300), (300, 400)], None, 199, 1),
        ([(100, 200), (200, 300), (300, 400)], None, 200, 2),
        ([(100, 200), (200, 300), (300, 400)], None, 300, 3),
        ([(100, 200), (210, 300)], None, 209, 1),
        ([(100, 200), (210, 300)], None, 210, 2),
        # closed in the first: those that were to come never do
        ([(100, 200), (500, 600)], 1, 150, 1),
        ([(100, 200), (500, 600)], 1, 400, 1),
        ([(100, 200), (500, 600)], 1, 50, 1),
        # closed in the second
        ([(100, 200), (500, 600), (900, 950)], 2, 550, 2),
        ([(100, 200), (500, 600), (900, 950)], 2, 800, 2),
    ],
)
def test_which_round_is_meant(windows: list[tuple[int, int]], closed: int | None, now_s: int, ordinal: int) -> None:
    assert current(versions(*windows, closed=closed), now_s * SECOND_MS).round.ordinal == ordinal


@given(
    gaps=st.lists(st.tuples(st.integers(0, 100), st.integers(1, 100)), min_size=1, max_size=8),
    now_s=st.integers(0, 2000),
)
def test_a_round_that_is_on_is_always_the_one(gaps: list[tuple[int, int]], now_s: int) -> None:
    at_s, windows = 0, []
    for pause_s, length_s in gaps:
        windows.append((at_s + pause_s, at_s + pause_s + length_s))
        at_s = windows[-1][1]
    chosen = current(versions(*windows), now_s * SECOND_MS).round
    on = [ordinal for ordinal, (begins_s, ends_s) in enumerate(windows, start=1) if begins_s <= now_s < ends_s]
    if on:
        assert [chosen.ordinal] == on
    else:
        to_come = [ordinal for ordinal, (begins_s, _) in enumerate(windows, start=1) if begins_s > now_s]
        last_s = max((ends_s for _, ends_s in windows if ends_s <= now_s), default=None)
        just_over = last_s is not None and now_s * SECOND_MS < last_s * SECOND_MS + AFTERGLOW_MS
        assert chosen.ordinal == (len(windows) if not to_come else to_come[0] - 1 if just_over else to_come[0])


class Years:
    """A ledger whose one sale has a new round at every reading."""

    def __init__(self) -> None:
        self.ordinal = 0

    async def sales(self, changed_after: int = 0, rounds_max: int = 1) -> list[Sale]:
        self.ordinal += 1
        windows = [(start, start + 1) for start in range(self.ordinal)]
        return list(versions(*windows, changed=self.ordinal))[-rounds_max:]


class Clockwork:
    """A gate whose clock is wrong."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s

    async def pulses(self, refs: Sequence[object]) -> tuple[int, list[None]]:
        return int((time.time() + self.ahead_s) * 1000), [None for _ in refs]


@pytest.mark.parametrize("ahead_s", [3600.0, -40.0])
async def test_how_far_the_gates_clock_is_ahead_is_a_figure(ahead_s: float) -> None:
    cache = SaleCache(cast(Any, None), cast(Any, Clockwork(ahead_s)), PublicIds(b"k" * 32, "sale"))
    await cache.refresh_pulses()
    told = REGISTRY.get_sample_value("seckill_clock_offset_seconds", {"store": "gate"})
    assert told == pytest.approx(ahead_s, abs=5)


def test_a_node_keeps_the_newest_rounds_only() -> None:
    sale_cache = SaleCache(cast(Any, Years()), cast(Any, None), PublicIds(b"k" * 32, "sale"))

    async def a_long_time() -> None:
        for _ in range(100):
            await sale_cache.refresh_sales()

    asyncio.run(a_long_time())
    assert [round_.ordinal for round_ in sale_cache._rounds()] == list(range(101 - ROUNDS_KEPT, 101))
    assert len(sale_cache._sale_of_round) == ROUNDS_KEPT
    assert sale_cache.sale_of_round(101) is None


def test_what_is_true_of_a_sale_is_true_in_all_its_rounds() -> None:
    sale_cache = SaleCache(cast(Any, None), cast(Any, None), PublicIds(b"k" * 32, "sale"))
    first, second = versions((100, 200), (500, 600))
    for sale in (first, second):
        sale_cache.put(sale)
    newer = versions((100, 200), (500, 700), changed=2)[1]
    sale_cache.put(newer)
    known = sale_cache.sale_of_round(first.round.id)
    assert known is not None
    assert known.changed == 2
    sale_cache.put(second)
    assert sale_cache.sale_of_round(second.round.id) == newer, "older news change nothing"


async def test_a_clock_that_cannot_be_read_is_news_too() -> None:
    """Those who keep what they know by it have to look at the time again: another round may be the current one."""

    class Silent:
        async def pulses(self, rounds: Sequence[Any]) -> Any:
            raise GateUnavailable("no answer")

    cache = SaleCache(cast(Any, None), cast(Any, Silent()), PublicIds(b"k" * 32, "sale"))
    before = cache.news
    with pytest.raises(GateUnavailable):
        await cache.refresh_pulses()
    assert cache.news > before
