"""Every cause of an alarm, with the sentence that people read and the row of the runbook that belongs to it."""

from collections.abc import Mapping
from enum import StrEnum

# Page and anchor are the same as in the Prometheus alerts.
_PAGE = "docs/operations.md"


class AlarmCause(StrEnum):
    GATE_AWAY = "nobody can buy: the gate does not answer"
    GATE_FULL = "nobody can buy: the gate is full"
    GATE_MEMORY_SHORT = "the gate's memory is nearly full"
    GATE_DISK_SHORT = "the gate's disk is nearly full"
    LEDGER_DISK_SHORT = "the ledger's disk is nearly full"
    LEDGER_AWAY = "orders cannot be written: the ledger does not answer, or cannot be written to"
    ROUNDS_LOST = "nobody can buy from rounds that the gate has lost, until they are rebuilt"
    UNFIT = "a server of the gate cannot keep the promises: nobody is admitted there"
    DAMAGED = "a round is damaged in the gate: it refuses until it is rebuilt"
    KEY_TAKEN = "something else stood under a key of the gate, and was taken away"
    QUEUES_LOST = "the queues of these lanes were lost"
    ORDERS_RECOVERED = "orders that were accepted were not in the ledger, and have been written"
    AUDIT_BROKEN = "the audit has found something broken"
    ORDER_FAILED = "an order has failed for good"
    BROKER_REFUSES = "the broker refuses orders; they wait in the streams"
    ORDERS_LAPSE = "many orders of a sale are let lapse"
    REFUND_REFUSED = "the payment provider will not make a refund"
    WEBHOOK_DISABLED = "a webhook was disabled, and gets no more events until it is enabled"
    WEBHOOK_MISSED = "events were pruned before they were sent to a webhook"
    BEACON_AWAY = "the beacon of a draw does not answer"
    BEACON_MISSED = "a draw is made without its beacon, by the seed alone"
    DRAW_WAITS = "a draw waits for its public value, which an operator has to give"
    TEST = "this is a test: nothing is wrong"


_ROWS: Mapping[str, str] = {
    AlarmCause.GATE_AWAY: "if-gate-away",
    AlarmCause.GATE_FULL: "if-gate-full",
    AlarmCause.GATE_MEMORY_SHORT: "if-nearly-full",
    AlarmCause.GATE_DISK_SHORT: "if-nearly-full",
    AlarmCause.LEDGER_DISK_SHORT: "if-nearly-full",
    AlarmCause.LEDGER_AWAY: "if-ledger-away",
    AlarmCause.ROUNDS_LOST: "if-gate-empty",
    AlarmCause.UNFIT: "if-gate-unfit",
    AlarmCause.DAMAGED: "if-gate-damaged",
    AlarmCause.KEY_TAKEN: "if-gate-damaged",
    AlarmCause.QUEUES_LOST: "if-gate-empty",
    AlarmCause.ORDERS_RECOVERED: "if-ledger-old",
    AlarmCause.AUDIT_BROKEN: "if-audit-finds",
    AlarmCause.ORDER_FAILED: "if-order-refused",
    AlarmCause.BROKER_REFUSES: "if-broker-refuses",
    AlarmCause.ORDERS_LAPSE: "if-orders-lapse",
    AlarmCause.REFUND_REFUSED: "if-refund-refused",
    AlarmCause.WEBHOOK_DISABLED: "if-webhook-down",
    AlarmCause.WEBHOOK_MISSED: "if-webhook-missed",
    AlarmCause.BEACON_AWAY: "if-draw-waits",
    AlarmCause.BEACON_MISSED: "if-draw-waits",
    AlarmCause.DRAW_WAITS: "if-draw-waits",
    AlarmCause.TEST: "alarms",
}


def runbook(what: str) -> str | None:
    """The place in the runbook that says what to do. None if an earlier version raised the alarm and this one does not
    know it."""
    row = _ROWS.get(what)
    return None if row is None else f"{_PAGE}#{row}"
