"""How much one address may ask for: a whole school at once, a flood of addresses that takes no memory, and no address
at the expense of another."""

import tracemalloc

from seckill.engine.door.address_rate import ADDRESSES_MAX, AT_ONCE_S, AddressRate

HERE, THERE = "192.0.2.1", "192.0.2.2"


def allowed(rate: AddressRate, address: str, now: float, tries: int) -> int:
    return sum(rate.wait_s(address, now) == 0 for _ in range(tries))


def test_ten_seconds_worth_at_once_and_then_the_rate() -> None:
    rate = AddressRate(5)
    assert allowed(rate, HERE, 1000.0, 500) == 5 * AT_ONCE_S
    assert allowed(rate, HERE, 1001.0, 500) == 5
    assert allowed(rate, HERE, 1003.0, 500) == 10
    assert allowed(rate, THERE, 1003.0, 500) == 50, "another address has not asked yet"
    assert allowed(rate, HERE, 1100.0, 500) == 50


def test_the_wait_is_as_long_as_it_says() -> None:
    rate = AddressRate(0.25)
    now = 1000.0
    assert allowed(rate, HERE, now, 2) == 2
    wait_s = rate.wait_s(HERE, now)
    assert wait_s == 2
    assert rate.wait_s(HERE, now + wait_s - 1.5) > 0
    assert rate.wait_s(HERE, now + wait_s) == 0


def test_a_refused_request_makes_nobody_wait_longer() -> None:
    rate = AddressRate(1)
    allowed(rate, HERE, 1000.0, 10_000)
    assert rate.wait_s(HERE, 1001.0) == 0


def test_nobody_in_particular_is_not_limited() -> None:
    assert allowed(AddressRate(1), "", 1000.0, 100) == 100
    assert allowed(AddressRate(0), HERE, 1000.0, 100) == 100


def test_a_million_addresses_take_a_bounded_memory_and_let_nobody_off() -> None:
    rate = AddressRate(1)
    assert allowed(rate, HERE, 1000.0, 100) == 10
    most = 0
    for number in range(1_000_000):
        assert rate.wait_s(str(number), 1000.0) == 0
        if number % 10_000 == 0:  # the limited client presses on in the middle of the flood
            assert rate.wait_s(HERE, 1000.0) > 0
            most = max(most, len(rate))
    assert most <= ADDRESSES_MAX
    assert allowed(rate, THERE, 1001.0, 100) == 10, "the flood has made nobody wait"


def test_what_all_places_take() -> None:
    rate = AddressRate(1)
    tracemalloc.start()
    try:
        for number in range(ADDRESSES_MAX):
            rate.wait_s(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1000.0)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(rate) == ADDRESSES_MAX
    assert taken < 20e6, "as the module says"


def test_whoever_was_silent_is_forgotten() -> None:
    rate = AddressRate(1)
    for number in range(1000):
        rate.wait_s(f"192.0.2.{number}", 1000.0)
    rate.wait_s(HERE, 1000.0 + AT_ONCE_S)
    rate.wait_s(HERE, 1000.0 + 2 * AT_ONCE_S)
    assert len(rate) <= 2
