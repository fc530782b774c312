"""The judgement of a run: a flaw in the evidence turns its check red, and no other."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from seckill.audit.report import Verdict
from seckill.lab.chaos.evidence import Amnesia, Done, Evidence, ItemEnd, Money, Recovery, Sight
from seckill.lab.chaos.judgement import judge
from tests.lab.chaos.evidence import NUMBER, ack, arrival, entry, event, good, row

Spoil = Callable[[Evidence], None]
PAID = 2  # where the payment of the first order is in the feed, and among the webhooks


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


def tell_too_early(evidence: Evidence) -> None:
    evidence.told.acks[f"o{NUMBER}"] = replace(ack(NUMBER), promised=True)


def give_to_another(evidence: Evidence) -> None:
    evidence.books.rows[NUMBER] = row(NUMBER, user="somebody else")


def sell_twice_for_a_key(evidence: Evidence) -> None:
    evidence.books.rows[7] = row(7, user=f"u{NUMBER}", state="expired", request_id=f"r{NUMBER}")


def answer_two_orders(evidence: Evidence) -> None:
    evidence.told.acknowledge(ack(NUMBER + 1, user=f"u{NUMBER}", key=f"k{NUMBER}"))


def exceed_the_limit(evidence: Evidence) -> None:
    evidence.books.rows[7] = row(7, user=f"u{NUMBER}", state="unpaid")


def exceed_a_shared_limit(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    red, blue = replace(round_, group="colours"), replace(round_, round_id=2, group="colours")
    evidence.books.rounds = [red, blue]
    evidence.books.rows[7] = replace(row(7, user=f"u{NUMBER}"), round_id=2)
    evidence.books.rows |= {number: replace(row(number), round_id=2) for number in (8, 9)}
    evidence.books.money = Money(taken=300, earned=300, refunds=0, undecided=0)


def lose_an_entry(evidence: Evidence) -> None:
    del evidence.books.entries["e3"]


def serve_another_order(evidence: Evidence) -> None:
    evidence.told.entries["e1"] = replace(evidence.told.entries["e1"], order_id="o7")


def be_in_line_twice(evidence: Evidence) -> None:
    evidence.books.entries["e4"] = entry(4, user="late", state="passed_over")


def serve_without_an_order(evidence: Evidence) -> None:
    evidence.books.entries["e2"] = entry(2, order=7)
    evidence.told.entries.pop("e2")


def overtake(evidence: Evidence) -> None:
    evidence.books.entries["e1"] = entry(1, user="slow", state="waiting")
    evidence.told.entries.pop("e1")


def leave_units_idle(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    evidence.books.rounds = [replace(round_, total=4, available=1, wanted=False)]
    evidence.books.entries["e3"] = entry(3, user="late", state="waiting")


def leak(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    evidence.books.rounds = [replace(round_, total=4)]


def leave_unsold(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    evidence.books.rounds = [replace(round_, total=4, available=1)]


def oversell_an_item(evidence: Evidence) -> None:
    """The round as a whole is in order."""
    (round_,) = evidence.books.rounds
    parts = (ItemEnd(title="S", total=1, sold=1, live=2), ItemEnd(title="L", total=1, sold=1, live=1))
    evidence.books.rounds = [replace(round_, items=parts)]


def leave_an_item_unsold(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    parts = (ItemEnd(title="S", total=2, sold=1, live=1), ItemEnd(title="L", total=2, sold=2, live=2))
    evidence.books.rounds = [replace(round_, items=parts)]


def write_another_item(evidence: Evidence) -> None:
    evidence.told.acks[f"o{NUMBER}"] = replace(ack(NUMBER), item_id="S")
    evidence.books.rows[NUMBER] = replace(row(NUMBER), item_id="L")


def fail(evidence: Evidence) -> None:
    evidence.told.paid.discard(f"o{NUMBER}")
    evidence.books.rows[NUMBER] = row(NUMBER, state="failed")


def break_a_word(evidence: Evidence) -> None:
    evidence.books.rows[NUMBER] = row(NUMBER, state="expired")


def lose_money(evidence: Evidence) -> None:
    evidence.books.money = Money(taken=300, earned=200, refunds=50, undecided=0)


def lose_a_code(evidence: Evidence) -> None:
    (round_,) = evidence.books.rounds
    evidence.books.rounds = [replace(round_, gives_codes=True)]
    evidence.books.codes = Counter({number: 1 for number, row in evidence.books.rows.items() if row.state == "paid"})
    assert "codes" not in wrong(evidence)
    evidence.books.codes[NUMBER] -= 1


def give_a_code_twice(evidence: Evidence) -> None:
    lose_a_code(evidence)
    evidence.books.codes[NUMBER] += 2


def give_a_code_for_nothing(evidence: Evidence) -> None:
    evidence.books.codes[NUMBER] = 1


def lose_an_event(evidence: Evidence) -> None:
    """Loses it for good: neither reading has it."""
    del evidence.feed.followed[PAID]
    evidence.feed.again = list(evidence.feed.followed)


def pass_over_an_event(evidence: Evidence) -> None:
    """Its transaction became visible when the reader was past it."""
    del evidence.feed.followed[PAID]


def write_an_event_twice(evidence: Evidence) -> None:
    """Writes it a second time, as an entry of its own."""
    feed = evidence.feed
    feed.followed.append(event(len(feed.followed) + 1, "order.paid", f"o{NUMBER}"))
    feed.again = list(feed.followed)
    evidence.arrivals.append(arrival(feed.followed[-1]))


def tell_an_event_twice(evidence: Evidence) -> None:
    """Tells it a second time with the same id, when a reader goes on."""
    evidence.feed.followed.insert(PAID, evidence.feed.followed[PAID])


def swap_events(evidence: Evidence) -> None:
    """The order is paid before it is created, and is sent like that."""
    feed = evidence.feed
    feed.followed[1:3] = [event(2, "order.paid", f"o{NUMBER}"), event(3, "order.created", f"o{NUMBER}")]
    feed.again = list(feed.followed)
    evidence.arrivals = [arrival(each) for each in feed.followed]


def go_back(evidence: Evidence) -> None:
    feed = evidence.feed
    feed.followed[2], feed.followed[3] = feed.followed[3], feed.followed[2]
    feed.again = list(feed.followed)


def tell_of_nothing(evidence: Evidence) -> None:
    feed = evidence.feed
    feed.followed.append(event(len(feed.followed) + 1, "order.created", "o7"))
    feed.again = list(feed.followed)
    evidence.arrivals.append(arrival(feed.followed[-1]))


def give_a_code_to_nobody(evidence: Evidence) -> None:
    feed = evidence.feed
    feed.followed.append(replace(event(len(feed.followed) + 1, "voucher.given", "o7"), about=""))
    feed.again = list(feed.followed)
    evidence.arrivals.append(arrival(feed.followed[-1]))


def rewrite_the_feed(evidence: Evidence) -> None:
    again = evidence.feed.again
    assert again is not None
    again[PAID] = replace(again[PAID], digest="o1 was paid by somebody else")


def shorten_the_feed(evidence: Evidence) -> None:
    assert evidence.feed.again
    evidence.feed.again.pop()


def forget_a_cursor(evidence: Evidence) -> None:
    evidence.feed.refused.append("after 4: The feed has the events after 5, up to 9")


def never_deliver(evidence: Evidence) -> None:
    del evidence.arrivals[PAID]


def never_get_a_yes(evidence: Evidence) -> None:
    """The receiver has refused it, and it did not come again."""
    evidence.arrivals[PAID] = replace(evidence.arrivals[PAID], taken=False)


def forge(evidence: Evidence) -> None:
    """A delivery that is not signed is no event."""
    evidence.arrivals[PAID] = replace(evidence.arrivals[PAID], genuine=False)


def forge_one_more(evidence: Evidence) -> None:
    evidence.arrivals.append(replace(evidence.arrivals[PAID], genuine=False))


def send_what_is_not_there(evidence: Evidence) -> None:
    evidence.arrivals.append(arrival(event(99, "order.paid", f"o{NUMBER}")))


def send_something_else(evidence: Evidence) -> None:
    evidence.arrivals[PAID] = replace(evidence.arrivals[PAID], digest="another amount")


def deliver_out_of_order(evidence: Evidence) -> None:
    evidence.arrivals[1], evidence.arrivals[2] = evidence.arrivals[2], evidence.arrivals[1]


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
        (oversell_an_item, "oversold"),
        (leave_an_item_unsold, "leaked"),
        (write_another_item, "lost"),
        (lose, "lost"),
        (tell_too_early, "confirmed"),
        (give_to_another, "lost"),
        (sell_twice_for_a_key, "duplicates"),
        (answer_two_orders, "duplicates"),
        (exceed_the_limit, "duplicates"),
        (exceed_a_shared_limit, "duplicates"),
        (lose_an_entry, "line"),
        (serve_another_order, "line"),
        (be_in_line_twice, "line"),
        (serve_without_an_order, "line"),
        (overtake, "line"),
        (leave_units_idle, "line"),
        (leak, "leaked"),
        (leave_unsold, "leaked"),
        (fail, "failed"),
        (break_a_word, "kept word"),
        (lose_money, "money"),
        (lose_a_code, "codes"),
        (give_a_code_twice, "codes"),
        (give_a_code_for_nothing, "codes"),
        (write_an_event_twice, "feed"),
        (tell_an_event_twice, "feed"),
        (swap_events, "feed"),
        (go_back, "feed"),
        (tell_of_nothing, "feed"),
        (give_a_code_to_nobody, "feed"),
        (rewrite_the_feed, "feed"),
        (shorten_the_feed, "feed"),
        (forget_a_cursor, "feed"),
        (never_deliver, "webhook"),
        (never_get_a_yes, "webhook"),
        (forge, "webhook"),
        (forge_one_more, "webhook"),
        (send_what_is_not_there, "webhook"),
        (send_something_else, "webhook"),
        (deliver_out_of_order, "webhook"),
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


@pytest.mark.parametrize("spoil", [lose_an_event, pass_over_an_event])
def test_an_event_that_the_shop_never_saw_is_named(spoil: Spoil) -> None:
    evidence = good()
    spoil(evidence)
    (feed,) = [check for check in judge(evidence).checks if check.name == "feed"]
    assert feed.verdict is Verdict.BROKEN
    assert f"o{NUMBER} has order.created, and the ledger order.created, order.paid" in feed.named


def test_a_webhook_may_come_again_and_is_counted() -> None:
    evidence = good()
    evidence.arrivals += evidence.arrivals[:3]
    evidence.arrivals.insert(0, replace(evidence.arrivals[0], taken=False))
    (webhook,) = [check for check in judge(evidence).checks if check.name == "webhook"]
    assert webhook.verdict is Verdict.HOLDS
    assert "11 arrivals, 1 of them refused or not answered, 3 more than once though taken" in webhook.says


def test_what_comes_while_the_end_is_read_is_no_flaw() -> None:
    evidence = good()
    later = event(8, "round.retired", "")
    assert evidence.feed.again is not None
    evidence.feed.again.append(later)
    evidence.arrivals.append(arrival(later))
    assert wrong(evidence) == {}


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


@pytest.mark.parametrize("state", [None, "failed"])
def test_an_amnesia_excuses_nothing_that_the_ledger_had_confirmed(state: str | None) -> None:
    evidence = good()
    evidence.told.acknowledge(ack(7, confirmed=True))
    evidence.numbers["o7"] = 7
    if state is not None:
        evidence.books.rows[7] = row(7, state=state)
    evidence.amnesias.append(Amnesia(at_s=2.0, queued=frozenset({7})))
    assert wrong(evidence) == {"lost" if state is None else "failed": Verdict.BROKEN}
    assert judge(evidence).declared == 0


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


@pytest.mark.parametrize("amnesia", [True, False])
@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_key_may_buy_anew_when_its_order_came_too_late_from_the_broker(state: str, amnesia: bool) -> None:
    evidence = good()
    evidence.books.rows |= {7: row(7, user="u7", state=state, request_id="r"), 8: row(8, user="u7", request_id="r")}
    if amnesia:
        evidence.amnesias.append(Amnesia(at_s=2.0, queued=frozenset()))
    broken = {} if amnesia and state == "failed" else {"duplicates": Verdict.BROKEN}
    assert wrong(evidence) == broken
    evidence.told.acknowledge(ack(7, user="u7", key="k7"))
    evidence.told.acknowledge(ack(8, user="u7", key="k7"))
    evidence.numbers |= {"o7": 7, "o8": 8}
    assert wrong(evidence).get("duplicates") == broken.get("duplicates")


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


def read_only_once(evidence: Evidence) -> None:
    evidence.feed.again = None


@pytest.mark.parametrize("spoil", [miss_a_failpoint, miss_a_fault, measure_nothing, judge_nothing, read_only_once])
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
