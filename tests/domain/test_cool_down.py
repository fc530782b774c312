"""Buyers who let orders lapse wait, twice as long with each; those who have paid or waited already do not."""

from seckill.domain.cool_down import COOL_DOWN_S_MAX, LATE, cools_until_ms
from seckill.domain.line import OF_LINE


def test_each_lapse_doubles_the_wait_up_to_the_longest() -> None:
    assert [cools_until_ms(5, lapses, 1_000) for lapses in (1, 2, 3)] == [6_000, 11_000, 21_000]
    assert cools_until_ms(5, 5_000, 0) == 1_000 * COOL_DOWN_S_MAX


def test_nobody_waits_for_nothing() -> None:
    assert cools_until_ms(0, 3, 1_000) == 0, "the sale has no such rule"
    assert cools_until_ms(5, 0, 0) == 0, "no order has lapsed"
    assert cools_until_ms(5, 3, 1_000, f"{LATE}1f") == 0, "it is paid for"
    assert cools_until_ms(5, 3, 1_000, f"{OF_LINE}1f") == 0, "who has waited in line"
