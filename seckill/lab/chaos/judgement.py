"""Judges what a run has seen. Pure: the same evidence always gets the same verdict."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from seckill.audit.invariants import INVARIANTS
from seckill.audit.report import Verdict
from seckill.lab.chaos.event_judgement import feed_flaws, repeated, webhook_flaws
from seckill.lab.chaos.evidence import Ack, Amnesia, Evidence, ItemEnd, OrderRow, RoundEnd
from seckill.lab.chaos.line_judgement import line_flaws

LIVE = ("unpaid", "paid")
NAMED_MAX = 20
# An answer may come this much later than the admission that it reports.
ANSWER_S = 2.0
IN_FLIGHT = frozenset(invariant.name for invariant in INVARIANTS if invariant.safety)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    verdict: Verdict
    count: int  # of things that are wrong
    says: str
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    checks: tuple[Check, ...]
    declared: int  # orders lost with the gate's memory, as docs/guarantees.md allows
    failed: int  # orders that failed and whose buyers were told so

    @property
    def verdict(self) -> Verdict:
        found = {check.verdict for check in self.checks}
        return next((verdict for verdict in (Verdict.BROKEN, Verdict.UNKNOWN) if verdict in found), Verdict.HOLDS)


def judge(evidence: Evidence) -> Judgement:
    lost, declared, failed, told = _fates(evidence)
    checks = [
        _check("oversold", "Units sold beyond the total of a round.", _oversold(evidence)),
        _check("duplicates", "Orders beyond the one that a key or a limit allows.", list(_duplicates(evidence))),
        _check("confirmed", "Orders answered before the ledger had them, against the sale's word.", _early(evidence)),
        _check("lost", "Orders answered with 201 or 202 that are not in the ledger as they were answered.", lost),
        _check("failed", "Orders answered with 201 or 202 and failed, with no reason to.", failed),
        _leaked(evidence),
        _check(
            "kept word", "Payments and cancellations that were confirmed and do not stand.", list(_broken(evidence))
        ),
        _check(
            "money", "Money taken is not the price of paid orders, refunds and what is undecided.", _money(evidence)
        ),
        _check(
            "codes", "Paid units without a code of their own, and codes that nobody has paid for.", _codes(evidence)
        ),
        _line(evidence),
        _feed(evidence),
        _webhook(evidence),
        *_invariants(evidence),
        _rest(evidence),
        *_recoveries(evidence),
        _windows(evidence),
    ]
    return Judgement(checks=tuple(checks), declared=declared, failed=told)


def _check(name: str, says: str, wrong: list[str]) -> Check:
    verdict = Verdict.BROKEN if wrong else Verdict.HOLDS
    return Check(name=name, verdict=verdict, count=len(wrong), says=says, named=tuple(wrong[:NAMED_MAX]))


def _oversold(evidence: Evidence) -> list[str]:
    return [
        f"round {round_.round_id} ({what}): {max(units.live, units.sold)} of {units.total}"
        for round_ in evidence.books.rounds
        for what, units in _parts(round_)
        if max(units.live, units.sold) > units.total
    ]


def _parts(round_: RoundEnd) -> list[tuple[str, RoundEnd | ItemEnd]]:
    """The round, and each of its items."""
    return [(round_.title, round_), *((f"{round_.title}, {item.title}", item) for item in round_.items)]


def _duplicates(evidence: Evidence) -> Iterator[str]:
    rows = evidence.books.rows
    forgotten = {number for amnesia in evidence.amnesias for number in amnesia.queued}
    # A key whose order was lost with the gate's memory may buy again. With a broker, such an order may still reach a
    # worker later; then it is void, and its row says so.
    void = {number for number, row in rows.items() if evidence.amnesias and row.state == "failed"}
    for change in evidence.told.changes:
        first = evidence.numbers.get(change.first)
        if first not in void and (first in rows or first not in forgotten):
            yield f"{change.user} has {change.first} and {change.second} for one key"
    by_key = Counter(
        (row.round_id, row.user, row.request_id)
        for number, row in rows.items()
        if row.request_id and number not in void
    )
    for (round_id, user, _), count in by_key.items():
        if count > 1:
            yield f"{user} has {count} orders for one key in round {round_id}"
    held: Counter[tuple[int, str]] = Counter()
    for row in rows.values():
        held[row.round_id, row.user] += row.quantity if row.state in LIVE else 0
    limits = {round_.round_id: round_.limit for round_ in evidence.books.rounds}
    for (round_id, user), units in held.items():
        if units > limits.get(round_id, units):
            yield f"{user} holds {units} units of round {round_id}, the limit is {limits[round_id]}"
    yield from _above_shared_limits(evidence)


def _above_shared_limits(evidence: Evidence) -> Iterator[str]:
    groups = {round_.round_id: round_.group for round_ in evidence.books.rounds if round_.group is not None}
    limits = {round_.group: round_.limit for round_ in evidence.books.rounds}
    held: Counter[tuple[str, str]] = Counter()
    for row in evidence.books.rows.values():
        if row.round_id in groups and row.state in LIVE:
            held[groups[row.round_id], row.user] += row.quantity
    for (group, user), units in held.items():
        if units > limits[group]:
            yield f"{user} holds {units} units of the sales of {group}, whose limit is {limits[group]}"


def _line(evidence: Evidence) -> Check:
    entries = evidence.books.entries.values()
    says = (
        "Entries not as they were answered, two for one buyer, served out of turn, or waiting while units are idle: "
        f"{len(entries)} entries, {sum(entry.state == 'served' for entry in entries)} served."
    )
    return _check("line", says, list(line_flaws(evidence)))


def _codes(evidence: Evidence) -> list[str]:
    books = evidence.books
    giving = {round_.round_id for round_ in books.rounds if round_.gives_codes}
    due = {row.number: row.quantity for row in books.rows.values() if row.round_id in giving and row.state == "paid"}
    return [
        f"order {number} has {books.codes[number]} codes, and {due.get(number, 0)} paid units"
        for number in sorted({*due, *books.codes})
        if books.codes[number] != due.get(number, 0)
    ]


def _early(evidence: Evidence) -> list[str]:
    acks = evidence.told.acks.values()
    return [f"{ack.order_id} of {ack.user}" for ack in acks if ack.promised and not ack.confirmed]


def _fates(evidence: Evidence) -> tuple[list[str], int, list[str], int]:
    """Returns the orders that were lost without excuse, how many were lost as declared, the orders that failed without
    reason, and how many failed with their buyers told."""
    lost: list[str] = []
    failed: list[str] = []
    declared = told = 0
    for ack in evidence.told.acks.values():
        number = evidence.numbers.get(ack.order_id)
        row = None if number is None else evidence.books.rows.get(number)
        if row is None:
            if not ack.confirmed and any(number in amnesia.queued for amnesia in evidence.amnesias):
                declared += 1
            else:
                lost.append(f"{ack.order_id} of {ack.user}, answered after {ack.at_s:.1f} s")
        elif _content(row) != _content(ack):
            lost.append(f"{ack.order_id} was {ack.user}'s, {ack.quantity} units, and is {row.user}'s, {row.quantity}")
        elif row.state == "failed":
            told += 1
            if ack.confirmed or not any(_before(ack, row.number, amnesia) for amnesia in evidence.amnesias):
                failed.append(f"{ack.order_id} of {ack.user}, answered after {ack.at_s:.1f} s")
    return lost, declared, failed, told


def _content(order: Ack | OrderRow) -> tuple[object, ...]:
    return order.user, order.quantity, order.round_id, order.item_id


def _before(ack: Ack, number: int, amnesia: Amnesia) -> bool:
    """Whether the order was admitted by a gate that then lost its memory."""
    return number in amnesia.queued or ack.at_s <= amnesia.at_s + ANSWER_S


def _leaked(evidence: Evidence) -> Check:
    found: list[str] = []
    unclear: list[str] = []
    for round_ in evidence.books.rounds:
        if round_.available is not None and round_.available + round_.live != round_.total:
            found.append(
                f"round {round_.round_id} ({round_.title}): {round_.total} units, {round_.available} available, "
                f"{round_.live} sold"
            )
            continue
        for what, units in _parts(round_) if round_.wanted else ():
            if units.live < units.total:
                missing = units.total - units.live
                says = f"round {round_.round_id} ({what}): {missing} units were wanted and not sold"
                if (why := evidence.unclear.get(round_.title)) is None:
                    found.append(says)
                else:
                    unclear.append(f"{says}: {why}")
    check = _check("leaked", "Units that are neither available nor sold, or not sold though wanted.", found)
    if unclear and not found:
        return replace(check, verdict=Verdict.UNKNOWN, named=tuple(unclear[:NAMED_MAX]))
    return check


def _broken(evidence: Evidence) -> Iterator[str]:
    for wanted, ids in (("paid", evidence.told.paid), ("cancelled", evidence.told.cancelled)):
        for order_id in sorted(ids):
            row = evidence.books.rows.get(evidence.numbers.get(order_id, -1))
            if row is None or row.state != wanted:
                yield f"{order_id} was {wanted}, and is {row.state if row else 'not there'}"


def _money(evidence: Evidence) -> list[str]:
    money = evidence.books.money
    if money.taken == money.earned + money.refunds + money.undecided:
        return []
    return [f"{money.taken} taken; {money.earned} earned, {money.refunds} refunded, {money.undecided} undecided"]


def _feed(evidence: Evidence) -> Check:
    feed = evidence.feed
    says = (
        "The feed has every change of an order, payment and refund once, in its order, and tells the same again: "
        f"{len(feed.followed)} events, read on {feed.resumed} times after there was no answer."
    )
    check = _check("feed", says, feed_flaws(evidence))
    if feed.again is None and check.verdict is Verdict.HOLDS:
        return replace(check, verdict=Verdict.UNKNOWN, named=("it could not be read again",))
    return check


def _webhook(evidence: Evidence) -> Check:
    arrivals = evidence.arrivals
    says = (
        "Every event of the feed is delivered to a webhook, genuine, those of an order in their order: "
        f"{len(arrivals)} arrivals, {sum(not arrival.taken for arrival in arrivals)} of them refused or not answered, "
        f"{repeated(evidence)} more than once though taken."
    )
    return _check("webhook", says, webhook_flaws(evidence))


def _invariants(evidence: Evidence) -> Iterator[Check]:
    seen: dict[str, list[str]] = defaultdict(list)
    for sight in evidence.sights:
        for name, sentences in sight.broken.items():
            if name in IN_FLIGHT:  # faults are meant to make things wait
                seen[name] += [f"after {sight.at_s:.1f} s: {sentence}" for sentence in sentences]
    for invariant in INVARIANTS:
        verdict, named = evidence.final.get(invariant.name, (str(Verdict.UNKNOWN), ["it was never judged"]))
        wrong = seen[invariant.name] + (named if verdict == Verdict.BROKEN else [])
        judged = Verdict.BROKEN if wrong or verdict == Verdict.BROKEN else Verdict(verdict)
        shown = wrong or ([] if judged is Verdict.HOLDS else named)
        yield Check(
            name=f"audit: {invariant.name}",
            verdict=judged,
            count=len(wrong),
            says=invariant.says,
            named=tuple(shown[:NAMED_MAX]),
        )


def _rest(evidence: Evidence) -> Check:
    says = "With the faults over, everything comes to rest."
    if evidence.rested_s is None:
        return Check(name="rest", verdict=Verdict.BROKEN, count=1, says=says, named=("something is still on the move",))
    return Check(name="rest", verdict=Verdict.HOLDS, count=0, says=f"{says} It took {evidence.rested_s:.1f} s.")


def _recoveries(evidence: Evidence) -> Iterator[Check]:
    sentences = {
        "takeover": "A dead worker's entries are done by others within",
        "comeback": "After a restart of the gate, orders are accepted again within",
    }
    drilled = {done.kind for done in evidence.done}
    for what, says in sentences.items():
        found = [recovery for recovery in evidence.recoveries if recovery.what == what]
        calm = [recovery for recovery in found if recovery.calm]
        if what not in drilled:
            continue
        if not calm:
            yield Check(
                name=what, verdict=Verdict.UNKNOWN, count=0, says=f"{says} …: it could not be measured in calm."
            )
            continue
        longest = max(calm, key=lambda recovery: recovery.took_s)
        slow = [
            f"{recovery.took_s:.2f} s at {recovery.at_s:.1f} s"
            for recovery in calm
            if recovery.took_s > recovery.within_s
        ]
        yield Check(
            name=what,
            verdict=Verdict.BROKEN if slow else Verdict.HOLDS,
            count=len(slow),
            says=f"{says} {longest.within_s:g} s: {longest.took_s:.2f} s at most, {len(calm)} measured with nothing "
            f"else going on ({len(found) - len(calm)} more were not).",
            named=tuple(slow),
        )


def missing_windows(evidence: Evidence) -> list[str]:
    """Returns what should have been hit but was not: failpoints that never fired, and kinds of faults that never had an
    effect."""
    kinds = {done.kind for done in evidence.done}
    bitten = {done.kind for done in evidence.done if done.bit}
    never = [name for name in evidence.required if not evidence.fired[name]]
    return never + [f"{kind} did nothing" for kind in sorted(kinds - bitten)]


def _windows(evidence: Evidence) -> Check:
    missed = missing_windows(evidence)
    hit = len(evidence.required) - sum(name in missed for name in evidence.required)
    return Check(
        name="windows",
        verdict=Verdict.UNKNOWN if missed else Verdict.HOLDS,
        count=len(missed),
        says=f"Every window asked for was hit ({hit} of {len(evidence.required)}), and every fault did something.",
        named=tuple(missed),
    )
