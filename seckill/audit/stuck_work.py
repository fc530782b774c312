"""Finds work that waits longer than it should. Nothing is wrong yet, but a worker or a keeper has stopped working."""

from collections.abc import Sequence

from seckill.audit.counter_checks import Reading
from seckill.audit.gate import Absent
from seckill.audit.ledger import LedgerReader
from seckill.audit.report import Finding, Notes, Unsure, finding_about

# A restart, a takeover and a sweep together take a few seconds; after a minute something is down.
STUCK_MS = 60_000
# Enough to see what it is about.
NAMED_MAX = 20


async def judge_progress(readings: Sequence[Reading], ledger: LedgerReader, notes: Notes) -> None:
    for row in await ledger.overdue(STUCK_MS, NAMED_MAX):
        notes.add(
            Finding(
                invariant="progress",
                kind="overdue",
                says="is unpaid long after its time to pay was over: is a keeper running?",
                round_id=row.round_id,
                sale_id=row.sale_id,
                number=row.id,
                user=row.user_id,
            )
        )
    for row in await ledger.waiting(STUCK_MS, NAMED_MAX):
        says = f"has a {row.kind} that has waited for long to be passed on: is a keeper running?"
        notes.add(Finding(invariant="progress", kind="outbox", says=says, round_id=row.round_id, number=row.order_id))
    stuck: set[int] = set()
    for reading in readings:
        gate = reading.gate
        if isinstance(gate, Absent):
            if gate.damaged:
                says = f"{gate.reason}: nobody can buy until a keeper has taken it away"
                notes.add(finding_about(reading.after, "progress", "damaged", says))
            elif not reading.gone_in_order():
                notes.unsure.append(Unsure(("progress",), gate.reason, reading.id))
            continue
        for share in [gate] if reading.shares is None else reading.shares.first:
            if share.oldest_entry_ms is None or share.lane in stuck:
                continue
            if share.now_ms - share.oldest_entry_ms > STUCK_MS:
                stuck.add(share.lane)
                many = f"lane {share.lane} has {share.backlog} entries"
                says = f"{many}, the oldest for more than a minute: is a worker running?"
                notes.add(Finding(invariant="progress", kind="entries", says=says, round_id=reading.id))
