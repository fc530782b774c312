"""What is judged: a flaw in the evidence turns its check red, and nothing else does."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from seckill.audit.report import Verdict
from seckill.lab.chaos.evidence import Amnesia, Done, Evidence, Money, Recovery, Sight
from seckill.lab.chaos.judgement import judge
from tests.lab.chaos.evidence import NUMBER, ack, good, row

Spoil = Callable[[Evidence], None]


def wrong(evidence: Evidence) -> dict[str, Verdict]:
    return {check.name: check.verdict for check in judge(evidence).checks if check.verdict is not Verdict.HOLDS}


def test_a_good_run_holds() -> None:
    judgement = judge(good())
    assert judgement.verdict is Verdict.HOLDS
    assert (judgement.declared, judgement.failed) == (0, 0)
    assert len({check.name for check in judgement.checks}) == len(judgement.checks)


def oversell(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    evidence.books.rounds = [replace(round_, total=2, available=-1)]


def lose(evidence: Evidence) -> None:
    evidence.told.acknowledge(ack(7))
    evidence.numbers["o7"] = 7


def give_to_another(evidence: Evidence) -> None:
    evidence.books.rows[NUMBER] = row(NUMBER, user="somebody else")


def sell_twice_for_a_key(evidence: Evidence) -> None:
    evidence.books.rows[7] = row(7, user=f"u{NUMBER}", state="expired", request_id=f"r{NUMBER}")


def answer_two_orders(evidence: Evidence) -> None:
    evidence.told.acknowledge(ack(NUMBER + 1, user=f"u{NUMBER}", key=f"k{NUMBER}"))


def exceed_the_limit(evidence: Evidence) -> None:
    evidence.books.rows[7] = row(7, user=f"u{NUMBER}", state="unpaid")


def leak(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    evidence.books.rounds = [replace(round_, total=4)]


def leave_unsold(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    evidence.books.rounds = [replace(round_, total=4, available=1)]


def fail(evidence: Evidence) -> None:
    evidence.told.paid.discard(f"o{NUMBER}")
    evidence.books.rows[NUMBER] = row(NUMBER, state="failed")


def break_a_word(evidence: Evidence) -> None:
    evidence.books.rows[NUMBER] = row(NUMBER, state="expired")


def lose_money(evidence: Evidence) -> None:
    evidence.books.money = Money(taken=300, earned=200, refunds=50, undecided=0)


def break_for_a_moment(evidence: Evidence) -> None:
    evidence.sights.append(Sight(at_s=9.0, verdict="broken", broken={"stock": ["round 1: 3 is not 2"]}))


def break_in_the_end(evidence: Evidence) -> None:
    evidence.final["progress"] = ("broken", ["order o1 waits"])


def never_rest(evidence: Evidence) -> None:
    evidence.rested_s = None


def take_over_slowly(evidence: Evidence) -> None:
    evidence.recoveries.append(Recovery(what="takeover", at_s=20, took_s=3.1, within_s=3.0, calm=True))


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (oversell, "oversold"),
        (lose, "lost"),
        (give_to_another, "lost"),
        (sell_twice_for_a_key, "duplicates"),
        (answer_two_orders, "duplicates"),
        (exceed_the_limit, "duplicates"),
        (leak, "leaked"),
        (leave_unsold, "leaked"),
        (fail, "failed"),
        (break_a_word, "kept word"),
        (lose_money, "money"),
        (break_for_a_moment, "audit: stock"),
        (break_in_the_end, "audit: progress"),
        (never_rest, "rest"),
        (take_over_slowly, "takeover"),
    ],
)
def test_a_planted_flaw_is_called_by_its_name(spoil: Spoil, check: str) -> None:
    evidence = good()
    spoil(evidence)
    found = wrong(evidence)
    assert found.pop(check) is Verdict.BROKEN
    assert set(found) <= {"lost"}, "an order that two were promised is also not what one of them was promised"
    assert judge(evidence).verdict is Verdict.BROKEN


def test_waiting_is_no_flaw_while_faults_go_on() -> None:
    evidence = good()
    evidence.sights.append(Sight(at_s=9.0, verdict="broken", broken={"progress": ["order o1 waits"]}))
    assert wrong(evidence) == {}


def test_what_went_with_the_gates_memory_is_counted_apart() -> None:
    evidence = good()
    lose(evidence)
    evidence.amnesias.append(Amnesia(at_s=2.0, queued=frozenset({7})))
    judgement = judge(evidence)
    assert (judgement.verdict, judgement.declared) == (Verdict.HOLDS, 1)


def test_an_amnesia_excuses_no_order_that_was_not_in_the_streams() -> None:
    evidence = good()
    lose(evidence)
    evidence.amnesias.append(Amnesia(at_s=2.0, queued=frozenset({8})))
    assert wrong(evidence) == {"lost": Verdict.BROKEN}


def test_a_key_may_buy_anew_only_when_its_order_is_gone() -> None:
    evidence = good()
    evidence.told.acknowledge(ack(7, user=f"u{NUMBER}", key=f"k{NUMBER}"))
    evidence.numbers["o7"] = 7
    evidence.amnesias.append(Amnesia(at_s=2.0, queued=frozenset({7, NUMBER})))
    assert wrong(evidence) == {"duplicates": Verdict.BROKEN}, "the first order is still there"
    gone = good()
    gone.told.acknowledge(ack(7, user="u7", key="k7"))
    gone.told.acknowledge(ack(8, user="u7", key="k7"))
    gone.numbers |= {"o7": 7, "o8": 8}
    gone.books.rows[8] = row(8, user="u7", state="expired")
    gone.amnesias.append(Amnesia(at_s=2.0, queued=frozenset({7})))
    assert wrong(gone) == {}


@pytest.mark.parametrize(("at_s", "excused"), [(1.0, True), (9.0, False)])
def test_an_order_may_fail_when_the_gate_forgot_it(at_s: float, excused: bool) -> None:
    evidence = good()
    evidence.told.acknowledge(ack(7, at_s=at_s))
    evidence.numbers["o7"] = 7
    evidence.books.rows[7] = row(7, state="failed")
    evidence.amnesias.append(Amnesia(at_s=2.0, queued=frozenset()))
    assert (wrong(evidence) == {}) is excused
    assert judge(evidence).failed == 1


def miss_a_failpoint(evidence: Evidence) -> None:
    evidence.fired = Counter()


def miss_a_fault(evidence: Evidence) -> None:
    evidence.done.append(Done(at_s=9.0, ended_s=9.5, kind="starve", target="gate", bit=""))


def measure_nothing(evidence: Evidence) -> None:
    evidence.recoveries = [replace(recovery, calm=False) for recovery in evidence.recoveries]


def judge_nothing(evidence: Evidence) -> None:
    evidence.final = {}


@pytest.mark.parametrize("spoil", [miss_a_failpoint, miss_a_fault, measure_nothing, judge_nothing])
def test_what_was_not_seen_is_not_held(spoil: Spoil) -> None:
    evidence = good()
    spoil(evidence)
    assert set(wrong(evidence).values()) == {Verdict.UNKNOWN}
    assert judge(evidence).verdict is Verdict.UNKNOWN


def test_a_fault_that_did_something_once_was_hit() -> None:
    evidence = good()
    miss_a_fault(evidence)
    evidence.done.append(Done(at_s=12.0, ended_s=13.5, kind="starve", target="gate", bit="9 commands refused"))
    assert wrong(evidence) == {}
