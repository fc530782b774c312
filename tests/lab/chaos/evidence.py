"""A run in which everything went well, for tests that then spoil one thing."""

from collections import Counter

from seckill.audit.invariants import INVARIANTS
from seckill.lab.chaos.evidence import (
    Ack,
    Arrival,
    Books,
    Done,
    EntryRow,
    EntryTold,
    EventSeen,
    Evidence,
    FeedSeen,
    Money,
    OrderRow,
    Recovery,
    RoundEnd,
    Told,
)

NUMBER = 1000


def ack(number: int, *, user: str = "", key: str = "", at_s: float = 1.0, confirmed: bool = False) -> Ack:
    name = user or f"u{number}"
    return Ack(
        order_id=f"o{number}",
        sale="few",
        round_id=1,
        user=name,
        key=key or f"k{number}",
        quantity=1,
        at_s=at_s,
        promised=confirmed,
        confirmed=confirmed,
    )


def row(number: int, *, user: str = "", state: str = "paid", request_id: str = "") -> OrderRow:
    return OrderRow(
        number=number,
        order_id=f"o{number}",
        round_id=1,
        user=user or f"u{number}",
        quantity=1,
        state=state,
        request_id=request_id or f"r{number}",
    )


def entry(place: int, *, user: str = "", state: str = "served", order: int | None = None) -> EntryRow:
    return EntryRow(
        entry_id=f"e{place}",
        round_id=1,
        user=user or f"u{NUMBER + place}",
        quantity=1,
        item_id=0,
        state=state,
        place=place,
        order=order or (NUMBER + place if state == "served" else None),
    )


def entry_told(row: EntryRow) -> EntryTold:
    order_id = None if row.order is None else f"o{row.order}"
    return EntryTold(
        entry_id=row.entry_id, round_id=row.round_id, user=row.user, quantity=row.quantity, order_id=order_id
    )


def event(cursor: int, type_: str, order_id: str) -> EventSeen:
    return EventSeen(
        cursor=cursor,
        id=f"evt_{cursor}",
        type=type_,
        about=order_id,
        subject=order_id or "the sale",
        order_id=order_id,
        digest=f"{type_} {order_id}",
    )


def arrival(event: EventSeen, *, genuine: bool = True, taken: bool = True) -> Arrival:
    return Arrival(event_id=event.id, digest=event.digest, genuine=genuine, taken=taken)


def good() -> Evidence:
    """Three orders of one round with three units, each 100 cents, all paid. Two of them came from its line."""
    order_ids = [f"o{number}" for number in (NUMBER, NUMBER + 1, NUMBER + 2)]
    told_of = [("sale.created", ""), *((f"order.{what}", each) for each in order_ids for what in ("created", "paid"))]
    events = [event(cursor, *which) for cursor, which in enumerate(told_of, start=1)]
    told = Told()
    for number in (NUMBER, NUMBER + 1, NUMBER + 2):
        told.acknowledge(ack(number))
        told.paid.add(f"o{number}")
    entries = [entry(1), entry(2), entry(3, user="late", state="passed_over")]
    told.entries = {each.entry_id: entry_told(each) for each in entries}
    return Evidence(
        told=told,
        done=[
            Done(at_s=1.0, ended_s=2.0, kind="takeover", target="worker-1", bit="3 entries taken over"),
            Done(at_s=5.0, ended_s=6.0, kind="comeback", target="gate", bit="1 processes killed"),
        ],
        recoveries=[
            Recovery(what="takeover", at_s=1.2, took_s=1.1, within_s=3.0, calm=True),
            Recovery(what="comeback", at_s=5.5, took_s=0.2, within_s=3.0, calm=True),
        ],
        final={invariant.name: ("holds", []) for invariant in INVARIANTS},
        books=Books(
            rows={number: row(number) for number in (NUMBER, NUMBER + 1, NUMBER + 2)},
            rounds=[
                RoundEnd(round_id=1, title="few", total=3, sold=3, live=3, available=0, limit=1, wanted=True),
            ],
            entries={each.entry_id: each for each in entries},
            money=Money(taken=300, earned=300, refunds=0, undecided=0),
            demanded=dict.fromkeys(order_ids, ("order.created", "order.paid")),
        ),
        feed=FeedSeen(followed=events, again=list(events), resumed=2),
        arrivals=[arrival(each) for each in events],
        numbers={f"o{number}": number for number in (NUMBER, NUMBER + 1, NUMBER + 2)},
        healing=(8.0, 9.5),
        rested_s=1.0,
        fired=Counter({"worker.ledger.record.after: kill": 2}),
        required=["worker.ledger.record.after: kill"],
    )
