"""Every metric, named in one place. With several processes, PROMETHEUS_MULTIPROC_DIR makes them one picture."""

import asyncio
import math
import os
import threading
import time
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MADE_EVERY_S = 1.0
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BATCHES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)

CLAIMS = Counter("seckill_claims", "Claims answered, by outcome", ["outcome"])
LOCAL_REFUSALS = Counter("seckill_local_refusals", "Claims refused without asking the gate", ["outcome"])
ADMIT_BATCH = Histogram("seckill_admit_batch_size", "Claims that shared one call to the gate", buckets=_BATCHES)
ADMIT_SECONDS = Histogram("seckill_admit_seconds", "Duration of a call to the gate", buckets=_SECONDS)
ORDERS_RECORDED = Counter("seckill_orders_recorded", "Orders committed in the ledger", ["kind"])
RECORD_BATCH = Histogram("seckill_record_batch_size", "Orders written in one transaction", buckets=_BATCHES)
RECORD_SECONDS = Histogram("seckill_record_seconds", "Duration of a batch's transaction", buckets=_SECONDS)
TAKEN_OVER = Counter("seckill_entries_taken_over", "Stream entries taken over from a consumer that went silent")
ENTRIES_REFUSED = Counter("seckill_entries_refused", "Stream entries that the ledger refused or that cannot be read")
RELAYED = Counter("seckill_relayed", "Stream entries given to the broker, by its answer", ["answer"])
SETTLE_MISMATCHES = Counter("seckill_settle_mismatches", "Entries that somebody else had settled before")
ORDERS_EXPIRED = Counter("seckill_orders_expired", "Orders that were not paid in time")
LAPSED_SHARE = Gauge(
    "seckill_lapsed_share",
    "Share of a sale's orders that were cancelled or not paid in time",
    ["sale"],
    multiprocess_mode="mostrecent",
)
UNITS_RELEASED = Counter("seckill_releases", "Orders given back to the gate, by what it made of it", ["result"])
UNITS_MOVED = Counter("seckill_units_moved", "Units that a lane got from another because it had too few")
DEAD_LETTERS = Counter("seckill_dead_letters", "Orders given up after the last try")
CAPTURES = Counter("seckill_captures", "Notices of taken money, by what became of them", ["fate"])
LATE_PAYMENTS = Counter("seckill_late_payments", "Late payments that were decided, by how", ["result"])
OPERATOR_ACTIONS = Counter("seckill_operator_actions", "What operators did to orders", ["action"])
VOUCHERS_UPLOADED = Counter("seckill_vouchers_uploaded", "Codes that operators have uploaded")
VOUCHERS_REDEEMED = Counter("seckill_vouchers_redeemed", "Tries to redeem a code, by how they ended", ["result"])
CHECKOUTS = Counter("seckill_checkouts", "Pages of the provider's to pay on, by what became of them", ["result"])
REFUNDS = Counter("seckill_refunds", "Tries to make a refund, by how they ended", ["result"])
LINE_ENTRIES = Counter("seckill_line_entries", "Joining a line, by what became of it", ["outcome"])
LINE_SERVED = Counter("seckill_line_served", "Entries of lines that were served or passed over", ["outcome"])
JOIN_BATCH = Histogram(
    "seckill_join_batch_entries", "Entries in one transaction", buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500)
)
PASSES = Counter("seckill_passes", "Questions for a pass, by what was given", ["given"])
WEBHOOK_DELIVERIES = Counter("seckill_webhook_deliveries", "Tries to deliver an event, by how they ended", ["result"])
WEBHOOK_LAG = Gauge(
    "seckill_webhook_lag_seconds",
    "Age of the oldest event that an enabled webhook has not been asked about",
    multiprocess_mode="mostrecent",
)
WEBHOOKS_WAITING = Gauge(
    "seckill_webhook_deliveries_waiting", "Deliveries that wait to be tried again", multiprocess_mode="mostrecent"
)
WEBHOOKS_FAILING = Gauge(
    "seckill_webhooks_failing", "Enabled webhooks whose last delivery failed", multiprocess_mode="mostrecent"
)
INCIDENTS = Counter("seckill_incidents", "Refusals that may be an attack, by kind", ["kind"])
CONNECTIONS = Gauge("seckill_connections", "Connections that are open now", multiprocess_mode="livesum")
BACKLOG = Gauge("seckill_backlog", "Stream entries not settled yet", multiprocess_mode="mostrecent")
ROUNDS_MISSING = Gauge("seckill_rounds_missing", "Open rounds that the gate has lost", multiprocess_mode="mostrecent")
SERVERS_UNFIT = Gauge(
    "seckill_servers_unfit",
    "Servers of the gate that cannot keep the promises, so that nobody is admitted there",
    multiprocess_mode="mostrecent",
)
AUDITS = Counter("seckill_audits", "Readings of the audit, by verdict", ["verdict"])
AUDIT_FINDINGS = Gauge(
    "seckill_audit_findings", "What the audit finds broken now", ["invariant"], multiprocess_mode="mostrecent"
)


class Tallies:
    """Counts now and tells the metrics once in each turn of the event loop. With several processes a metric stands in
    a shared file, and every `inc` writes there: more than all else that a refusal costs after its token was checked."""

    def __init__(self) -> None:
        self._counts: dict[Counter, int] = {}

    def add(self, metric: Counter) -> None:
        counts = self._counts
        if not counts:
            asyncio.get_running_loop().call_soon(self._tell)
        counts[metric] = counts.get(metric, 0) + 1

    def _tell(self) -> None:
        for metric, count in self._counts.items():
            metric.inc(count)
        self._counts.clear()


def recorded_here() -> int:
    """New orders that this process has written since its start."""
    return int(REGISTRY.get_sample_value("seckill_orders_recorded_total", {"kind": "new"}) or 0)


class Exposition:
    """All metrics as text. Making it takes milliseconds: so it is done once a second at most, and callers that ask
    meanwhile get the same."""

    def __init__(self, folder: Path | None = None) -> None:
        named = os.environ.get(_FOLDER)
        self._folder = folder or (Path(named) if named else None)
        self._making = threading.Lock()
        self._text = b""
        self._made_s = -math.inf

    def known(self) -> bytes | None:
        """What is new enough; it costs nothing. None: `now` has to make it."""
        return self._text if time.monotonic() - self._made_s < MADE_EVERY_S else None

    def now(self) -> bytes:
        """The metrics of all processes that share the folder, or of this one."""
        with self._making:
            known = self.known()
            if known is None:
                known = self._text = generate_latest(self._registry())
                self._made_s = time.monotonic()
            return known

    def _registry(self) -> CollectorRegistry:
        if self._folder is None:
            return REGISTRY
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        return registry
