"""Guessing at the admin key gets slower and slower, for the guesser only."""

import pytest

from seckill.web.operators import guess_backoff
from seckill.web.operators.guess_backoff import FREE_GUESSES, WAIT_S_MAX, GuessBackoff

HERE, THERE = "192.0.2.1", "192.0.2.2"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_guesser_waits_longer_each_time_and_nobody_else_does() -> None:
    clock = Clock()
    guesses = GuessBackoff(clock)
    waits = []
    for number in range(FREE_GUESSES + 10):
        waits.append(guesses.wait_s(HERE))
        clock.now += waits[-1]
        assert guesses.wait_s(HERE) == 0
        guesses.wrong(HERE, f"key-{number}")
        assert guesses.wait_s(THERE) == 0
    assert waits == [0] * (FREE_GUESSES + 1) + [1, 2, 4, 8, 16, 32, 60, 60, 60][: len(waits) - FREE_GUESSES - 1]
    assert guesses.wait_s(HERE) == WAIT_S_MAX


def test_the_same_wrong_key_again_is_no_guess() -> None:
    """A page that is still open, with a key that was changed."""
    guesses = GuessBackoff(Clock())
    for _ in range(100):
        guesses.wrong(HERE, "the old key")
        guesses.wrong(HERE, "an older key")
    assert guesses.wait_s(HERE) == 0


def test_guesses_are_forgotten_after_a_while() -> None:
    clock = Clock()
    guesses = GuessBackoff(clock)
    for number in range(FREE_GUESSES + 3):
        guesses.wrong(HERE, f"key-{number}")
    assert guesses.wait_s(HERE) == 4
    clock.now += guess_backoff.FORGOTTEN_S + 1
    guesses.wrong(HERE, "another")
    assert guesses.wait_s(HERE) == 0


def test_a_network_of_ipv6_is_one_guesser() -> None:
    guesses = GuessBackoff(Clock())
    for number in range(FREE_GUESSES + 1):
        guesses.wrong(f"2001:db8::{number}", f"key-{number}")
    assert guesses.wait_s("2001:db8::ffff") == 1


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guess_backoff, "ADDRESSES_MAX", 100)
    guesses = GuessBackoff(Clock())
    for number in range(1000):
        for key in range(20):
            guesses.wrong(f"192.0.{number // 256}.{number % 256}", f"key-{key}")
    assert len(guesses._guessers) == 100
    assert max(len(guesser.known) for guesser in guesses._guessers.values()) == guess_backoff.KEYS_MAX
