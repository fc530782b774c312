"""A phase is good or names the part that was full, and what is said of a rehearsal follows from its phases."""

from typing import Any

import pytest

from seckill.lab.rehearsal.judgement import COULD_NOT_TELL, NOT_REACHED, REACHED, Bottleneck, Judged, conclude, judge
from tests.lab.rehearsal.making import buckets, good, parts, seen, slow, steady, wave


def test_a_phase_in_which_every_promise_was_kept_is_good() -> None:
    judged = good(steady(100))
    assert (judged.good, judged.full) == (True, None)
    assert judged.reached == 100


SLOW = {"waits": buckets(ms_3000=100)}


@pytest.mark.parametrize(
    ("told", "figures", "full"),
    [
        # How the crowd fared, what the parts report, and which of them was full.
        (SLOW, {"api": 0.97}, Bottleneck.API),
        (SLOW, {"gate_busiest": 0.95}, Bottleneck.GATE),
        (SLOW, {"gate_busiest": 0.95, "api": 0.97}, Bottleneck.GATE),  # the API waits for it, and for itself
        (SLOW, {"admit_ms": 120.0}, Bottleneck.DISK),
        (SLOW, {"admit_ms": 120.0, "gate_busiest": None}, Bottleneck.GATE),  # it is unknown which of the two
        (SLOW, {"shared": True, "machine": 0.99}, Bottleneck.MACHINE),
        (SLOW, {"shared": False, "machine": 0.99}, Bottleneck.BETWEEN),
        (SLOW, {}, Bottleneck.BETWEEN),
        (SLOW | {"cpu": [0.3, 0.97]}, {"api": 0.97}, Bottleneck.SENDER),  # answers may have waited to be read
        ({"late": buckets(ms_1=50, ms_600=50)}, {}, Bottleneck.SENDER),
        ({"late": buckets(ms_600=100)}, {"shared": True, "machine": 0.99}, Bottleneck.MACHINE),
        ({"outcomes": {"accepted": 60, "rate_limited": 40}}, {}, Bottleneck.LIMITS),
        ({"outcomes": {"accepted": 60, "connection refused": 40}, "waits": buckets(ms_9=60)}, {}, Bottleneck.SOCKETS),
        ({"outcomes": {"accepted": 60, "too_many_connections": 40}}, {}, Bottleneck.SOCKETS),
        (
            {"outcomes": {"accepted": 60, "no file or port left here": 40}, "waits": buckets(ms_9=60)},
            {},
            Bottleneck.SENDER,
        ),
        ({"outcomes": {"accepted": 60, "http 502": 40}}, {}, Bottleneck.BETWEEN),
        ({"outcomes": {"accepted": 60, "unknown": 40}}, {"gate_busiest": 0.9}, Bottleneck.GATE),
        ({"outcomes": {"accepted": 60, "overloaded": 40}}, {"worker": 0.9}, Bottleneck.WORKER),
        ({"outcomes": {"accepted": 60, "overloaded": 40}}, {}, Bottleneck.DATABASE),
        ({}, {"lag_ms": 5000, "backlog": 900, "worker": 0.95}, Bottleneck.WORKER),
        ({}, {"lag_ms": 5000, "backlog": 900}, Bottleneck.DATABASE),
        ({"outcomes": {"accepted": 60, "too late": 40}, "waits": buckets(ms_9=60)}, {"api": 1.0}, Bottleneck.API),
        # Neither bots that are refused nor one answer of very many that is late make a phase bad.
        ({"outcomes": {"accepted": 60, "limit_reached": 40}}, {}, None),
        ({"pressed": 1001, "waits": buckets(ms_20=1000)}, {}, None),
    ],
)
def test_the_part_that_was_full_is_named(
    told: dict[str, Any], figures: dict[str, Any], full: Bottleneck | None
) -> None:
    judged = judge(steady(100), seen(**told), parts(**figures))
    assert judged.full == full
    assert judged.good == (full is None)


GOOD = [good(steady(100)), good(steady(200)), good(wave(160))]
API_FULL = [*GOOD, slow(steady(400), api=0.95)]
SENDER_FULL = [*GOOD, judge(steady(400), seen(late=buckets(ms_900=100)), parts())]


@pytest.mark.parametrize(
    ("phases", "need", "exit_code"),
    [
        (API_FULL, None, REACHED),
        (API_FULL, 160, REACHED),
        (API_FULL, 161, NOT_REACHED),
        (SENDER_FULL, 161, COULD_NOT_TELL),  # the deployment might have done it
        (GOOD, 161, COULD_NOT_TELL),  # nothing was full
        ([good(steady(100)), slow(wave(80), api=0.95)], None, COULD_NOT_TELL),  # no opening has confirmed it
        ([good(steady(100)), slow(wave(80), api=0.95)], 80, NOT_REACHED),
        ([], None, COULD_NOT_TELL),
    ],
)
def test_the_exit_code_says_whether_the_need_is_met(phases: list[Judged], need: float | None, exit_code: int) -> None:
    assert conclude(phases, need, audit="holds").exit_code == exit_code


def test_what_was_full_at_the_lowest_rate_is_first() -> None:
    phases = [*GOOD, slow(steady(800), gate_busiest=1.0), slow(steady(400), api=0.95)]
    verdict = conclude(phases, None, audit="holds")
    assert (verdict.safe, verdict.steady, verdict.full, verdict.full_at) == (160, 200, Bottleneck.API, 400)
    assert not verdict.is_lower_bound


def test_books_that_do_not_add_up_are_worse_than_any_rate() -> None:
    assert conclude(GOOD, 1, audit="broken").exit_code == NOT_REACHED
    assert conclude(GOOD, 1, audit="unknown").exit_code == REACHED


def test_what_the_machine_could_do_without_the_sender() -> None:
    """API and worker used 0.024 s in that second, and the gate 0.016."""
    facts = {"gate_cpu_s": 0.016, "gate_busiest": 0.016, "machine_cores": 2}
    here = parts(shared=True, api=0.01, worker=0.004, **facts)
    phases = [judge(steady(100), seen(), here), judge(steady(400), seen(), here), judge(wave(900), seen(), here)]
    assert conclude(phases, None, audit="holds").alone == pytest.approx(400 * 2 / 0.04)
    full = [judge(steady(400), seen(), parts(shared=True, api=0.5, worker=0.004, **facts))]
    assert conclude(full, None, audit="holds").alone == pytest.approx(800), "no process has more than a core"
    elsewhere = [judge(steady(100), seen(), parts(**facts))]
    unseen = [judge(steady(100), seen(), parts(shared=True, machine_cores=2))]
    assert [conclude(each, None, audit="holds").alone for each in (elsewhere, unseen, [])] == [None] * 3
