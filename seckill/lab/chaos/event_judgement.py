"""Judges whether feed and webhooks have delivered what the ledger demands: nothing lost, nothing twice, in order.
Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from seckill.lab.chaos.evidence import Evidence


def feed_flaws(evidence: Evidence) -> list[str]:
    return [*evidence.feed.refused, *_cursors(evidence), *_changes(evidence), *_strangers(evidence), *_again(evidence)]


def _cursors(evidence: Evidence) -> Iterator[str]:
    for before, event in pairwise(evidence.feed.followed):
        if event.cursor <= before.cursor:
            yield f"{event.id} has the cursor {event.cursor}, after {before.cursor}"
    for event_id, count in Counter(event.id for event in evidence.feed.followed).items():
        if count > 1:
            yield f"{event_id} is there {count} times"


def _changes(evidence: Evidence) -> Iterator[str]:
    told: dict[str, list[str]] = defaultdict(list)
    for event in evidence.feed.followed:
        if event.about:
            told[event.about].append(event.type)
    for about, demanded in evidence.books.demanded.items():
        found = told.pop(about, [])
        if found != list(demanded):
            yield f"{about} has {_listed(found)}, and the ledger {_listed(demanded)}"
    for about, found in told.items():
        yield f"{about} has {_listed(found)}, and the ledger does not know of it"


def _strangers(evidence: Evidence) -> Iterator[str]:
    """Finds events that mention an order in passing, such as a voucher code's, where the ledger does not know the
    order."""
    for event in evidence.feed.followed:
        if event.order_id and not event.about and event.order_id not in evidence.books.demanded:
            yield f"{event.id} is a {event.type} of {event.order_id}, which the ledger does not know of"


def _again(evidence: Evidence) -> Iterator[str]:
    """A feed that is read again may have grown but must not differ."""
    again = evidence.feed.again
    if again is None:
        return
    for place, event in enumerate(evidence.feed.followed):
        if place >= len(again):
            yield f"{event.id} is not there when the feed is read again"
        elif again[place] != event:
            yield f"{event.id}, at {event.cursor}, is {again[place].id} or says something else when read again"


def webhook_flaws(evidence: Evidence) -> list[str]:
    return [*_not_genuine(evidence), *_never_taken(evidence), *_out_of_order(evidence)]


def _not_genuine(evidence: Evidence) -> Iterator[str]:
    known = {event.id: event.digest for event in [*(evidence.feed.again or []), *evidence.feed.followed]}
    for arrival in evidence.arrivals:
        if not arrival.genuine:
            yield f"{arrival.event_id or 'a message without an id'} came with a signature that does not fit"
        elif arrival.event_id not in known:
            yield f"{arrival.event_id} came, and is not in the feed"
        elif arrival.digest != known[arrival.event_id]:
            yield f"{arrival.event_id} came, and says something else in the feed"


def _never_taken(evidence: Evidence) -> Iterator[str]:
    taken = {arrival.event_id for arrival in evidence.arrivals if arrival.genuine and arrival.taken}
    for event in evidence.feed.followed:
        if event.id not in taken:
            yield f"{event.id} ({event.type} of {event.subject}) was never delivered"


def _out_of_order(evidence: Evidence) -> Iterator[str]:
    """Judges by the first arrival of each event, because repetitions are allowed."""
    known = {event.id: event for event in evidence.feed.followed}
    came = dict.fromkeys(arrival.event_id for arrival in evidence.arrivals if arrival.genuine)
    last: dict[str, int] = {}
    for event in (known[event_id] for event_id in came if event_id in known):
        if event.cursor < last.get(event.subject, 0):
            yield f"{event.id} ({event.type} of {event.subject}) came after a later one"
        last[event.subject] = max(event.cursor, last.get(event.subject, 0))


def repeated(evidence: Evidence) -> int:
    """Counts deliveries of events that the receiver had already taken. They are allowed: a keeper may die before it has
    noted a delivery."""
    taken = [arrival.event_id for arrival in evidence.arrivals if arrival.taken]
    return len(taken) - len(set(taken))


def _listed(types: tuple[str, ...] | list[str]) -> str:
    return ", ".join(types) or "nothing"
