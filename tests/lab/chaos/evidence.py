"""A run in which everything went well, for tests that then spoil one thing."""

from collections import Counter

from seckill.audit.report import INVARIANTS
from seckill.lab.chaos.evidence import Ack, Books, Done, Evidence, Money, OrderRow, Recovery, RoundEnd, Told

NUMBER = 1000


def ack(number: int, *, user: str = "", key: str = "", at_s: float = 1.0) -> Ack:
    name = user or f"u{number}"
    return Ack(
        order_id=f"o{number}",
        sale="few",
        round_id=1,
        user=name,
        key=key or f"k{number}",
        quantity=1,
        at_s=at_s,
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


def good() -> Evidence:
    """Three orders of one round with three units, each 100 cents, all paid."""
    told = Told()
    for number in (NUMBER, NUMBER + 1, NUMBER + 2):
        told.acknowledge(ack(number))
        told.paid.add(f"o{number}")
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
            money=Money(taken=300, earned=300, refunds=0, undecided=0),
        ),
        numbers={f"o{number}": number for number in (NUMBER, NUMBER + 1, NUMBER + 2)},
        healing=(8.0, 9.5),
        rested_s=1.0,
        fired=Counter({"worker.ledger.record.after: kill": 2}),
        required=["worker.ledger.record.after: kill"],
    )
