"""Defines every metric. With several processes, PROMETHEUS_MULTIPROC_DIR adds up their figures."""

import asyncio
import math
import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics.exposition import generate_latest as generate_open_metrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar, Sample

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
MADE_EVERY_S = 1.0
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BATCHES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)

CLAIMS = Counter("seckill_claims", "Claims answered, by outcome", ["outcome"])
LOCAL_REFUSALS = Counter("seckill_local_refusals", "Claims refused without asking the gate", ["outcome"])
ADMIT_BATCH = Histogram("seckill_admit_batch_size", "Claims that shared one call to the gate", buckets=_BATCHES)
ADMIT_SECONDS = Histogram("seckill_admit_seconds", "Duration of a call to the gate", buckets=_SECONDS)
ANSWER_SECONDS = Histogram("seckill_answer_seconds", "Time from a claim to its decision", ["answer"], buckets=_SECONDS)
ORDERS_RECORDED = Counter("seckill_orders_recorded", "Orders committed in the ledger", ["kind"])
RECORD_BATCH = Histogram("seckill_record_batch_size", "Orders written in one transaction", buckets=_BATCHES)
RECORD_SECONDS = Histogram("seckill_record_seconds", "Duration of a batch's transaction", buckets=_SECONDS)
TAKEN_OVER = Counter("seckill_entries_taken_over", "Stream entries taken over from a consumer that went silent")
ENTRIES_REFUSED = Counter("seckill_entries_refused", "Stream entries that the ledger refused or that cannot be read")
RELAYED = Counter("seckill_relayed", "Stream entries given to the broker, by its answer", ["answer"])
SETTLE_MISMATCHES = Counter("seckill_settle_mismatches", "Entries that another worker had settled before")
ORDERS_EXPIRED = Counter("seckill_orders_expired", "Orders that were not paid in time")
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
SPANS = Counter("seckill_spans", "Spans of traces: made, and of these exported to the collector or not", ["fate"])
INCIDENTS = Counter("seckill_incidents", "Refusals that may be an attack, by kind", ["kind"])
CONNECTIONS = Gauge("seckill_connections", "Connections that are open now", multiprocess_mode="livesum")
CONNECTIONS_MAX = Gauge("seckill_connections_max", "Connections that may be open", multiprocess_mode="livesum")
WAITING_CLIENTS = Gauge(
    "seckill_waiting_clients", "Long polls, event streams and sockets that are open now", multiprocess_mode="livesum"
)
BACKLOG = Gauge("seckill_backlog", "Stream entries not settled yet", multiprocess_mode="mostrecent")
PACED_LANES = Gauge(
    "seckill_paced_lanes",
    "Lanes that claims are let into no faster than orders are written",
    multiprocess_mode="livemax",
)
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
GATE_DAMAGE = Counter("seckill_gate_damage", "Keys of the gate under which something else stood")
ALARMS = Counter("seckill_alarms", "Messages to the address for alarms, by what became of them", ["result"])
BUILD_INFO = Gauge("seckill_build_info", "Always 1", ["version", "python"], multiprocess_mode="livemax")
PROCESSES = Gauge("seckill_processes", "Processes that run", ["role"], multiprocess_mode="livesum")
START_TIME = Gauge(
    "seckill_process_start_time_seconds", "When the newest process began", ["role"], multiprocess_mode="livemax"
)
CPU_SECONDS = Counter("seckill_process_cpu_seconds", "CPU time of the processes", ["role"])
RESIDENT_BYTES = Gauge(
    "seckill_process_resident_memory_bytes", "Memory of the processes", ["role"], multiprocess_mode="livesum"
)
LOOP_LAG = Gauge(
    "seckill_loop_lag_seconds",
    "How late the event loop was, at its worst since the last time that this was told",
    ["role"],
    multiprocess_mode="livemax",
)
ALIVE_AT = Gauge(
    "seckill_alive_timestamp_seconds",
    "When the event loop last told that it turns",
    ["role"],
    multiprocess_mode="livemin",
)
STEP_SECONDS = Gauge(
    "seckill_step_seconds", "For how long the longest step that runs now has run", ["role"], multiprocess_mode="livemax"
)
READY = Gauge(
    "seckill_ready", "1: the stores that the role needs for its work answer", ["role"], multiprocess_mode="livemin"
)
STORE_UP = Gauge("seckill_store_up", "1: the store answers", ["role", "store"], multiprocess_mode="livemin")
CLOCK_OFFSET = Gauge(
    "seckill_clock_offset_seconds",
    "How far the clock of a store is ahead of this machine's",
    ["store"],
    multiprocess_mode="livemostrecent",
)
SPACE_FREE = Gauge(
    "seckill_space_free_bytes",
    "How much of its disk or memory a store has left",
    ["store", "space"],
    multiprocess_mode="livemostrecent",
)
SPACE_SIZE = Gauge(
    "seckill_space_size_bytes",
    "How much disk or memory there is for a store",
    ["store", "space"],
    multiprocess_mode="livemostrecent",
)
# Exported as 0 before anything happens: Prometheus does not count the first value of a new series as an increase.
for _metric, _values in (
    (ORDERS_RECORDED, ("new", "repeated")),
    (CAPTURES, ("settled", "late", "surplus", "wrong_amount", "ref_reused", "unknown_order", "still_queued")),
    (CHECKOUTS, ("opened", "failed", "paid_unnoticed")),
    (REFUNDS, ("done", "failed", "by_hand", "refused")),
    (ALARMS, ("delivered", "failed", "given_up")),
    (SPANS, ("made", "exported", "failed")),
):
    for _value in _values:
        _metric.labels(_value)


class SaleReading(msgspec.Struct, frozen=True, kw_only=True):
    """How one sale stands, in its current round."""

    sale: str
    currency: str
    units: int
    available: int | None  # None: the gate does not have the round
    sold: int
    unpaid: int
    paid: int
    taken_cents: int
    waiting: int
    orders: int
    lapsed_share: float


class SalesReading(msgspec.Struct, frozen=True, kw_only=True):
    on: int = 0
    shown: Sequence[SaleReading] = ()


_OF_A_SALE = {
    "units": "Units that a sale has",
    "available": "Units that can be bought now",
    "sold": "Units of orders that are unpaid or paid",
    "unpaid": "Units of orders that are not paid yet",
    "paid": "Units of orders that are paid",
    "waiting": "Entries that wait in the line",
    "orders": "Orders that there ever were",
}
# A sale's name is a label, and Prometheus keeps a series for every label that there ever was.
SALES_SHOWN_MAX = 50
# A keeper that has not renewed its figures of sales for this long is gone.
SALES_FRESH_S = 60.0


class ShownSales(Collector):
    """Figures by sale, only of sales that are on. Metrics with labels cannot forget: with several processes, whatever
    was named once stays in a file as long as the process lives. So the keeper replaces all figures at once, and figures
    that it does not renew are no longer exported."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._reading = SalesReading()
        self._shown_s = -math.inf

    def show(self, reading: SalesReading) -> None:
        self._reading, self._shown_s = reading, time.monotonic()
        if self._folder is not None:
            written = self._folder / f"sales_{os.getpid()}.json"
            with suppress(OSError):  # the disk is full: the figures that are there grow old
                written.with_suffix(".new").write_bytes(msgspec.json.encode(reading))
                written.with_suffix(".new").replace(written)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        reading = self._newest()
        yield GaugeMetricFamily("seckill_sales_on", "Sales that are on", reading.on)
        yield GaugeMetricFamily("seckill_sales_shown", "Of these, sales that have figures here", len(reading.shown))
        for name, meaning in _OF_A_SALE.items():
            counts = ((each, getattr(each, name)) for each in reading.shown)
            yield _family(f"seckill_sale_{name}", meaning, ((each, n) for each, n in counts if n is not None))
        taken = GaugeMetricFamily(
            "seckill_sale_taken_cents", "Price of paid orders, less what was refunded", labels=["sale", "currency"]
        )
        for each in reading.shown:
            taken.add_metric([each.sale, each.currency], each.taken_cents)
        yield taken
        share = "Share of a sale's orders that were cancelled or not paid in time"
        yield _family("seckill_lapsed_share", share, ((each, each.lapsed_share) for each in reading.shown))

    def _newest(self) -> SalesReading:
        if self._folder is None:
            return self._reading if time.monotonic() - self._shown_s < SALES_FRESH_S else SalesReading()
        with suppress(FileNotFoundError):  # another process has just found its keeper dead
            files = [(written.stat().st_mtime, written) for written in self._folder.glob("sales_*.json")]
            written_s, newest = max(files, default=(0.0, None))
            if newest is not None and time.time() - written_s < SALES_FRESH_S:
                return msgspec.json.decode(newest.read_bytes(), type=SalesReading)
        return SalesReading()


def _family(name: str, meaning: str, values: Iterable[tuple[SaleReading, float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=["sale"])
    for each, value in values:
        family.add_metric([each.sale], value)
    return family


def _shared_folder() -> Path | None:
    named = os.environ.get(_FOLDER)
    return Path(named) if named else None


SALES = ShownSales(_shared_folder())
REGISTRY.register(SALES)


def spread(values: Sequence[float], bounds: Sequence[float], counts: list[int]) -> None:
    """Adds to the counts how many of the values, at least one and in ascending order, are in each bucket. `bounds` are
    the buckets' upper ends; what is above all of them is counted in one more. Looking for each bucket's end among the
    values takes a tenth of looking for each value's bucket, when there are hundreds."""
    place, done = bisect_left(bounds, values[0]), 0
    while done < len(values):
        until = bisect_right(values, bounds[place], done) if place < len(bounds) else len(values)
        counts[place] += until - done
        place, done = place + 1, until


class Durations:
    """Collects values and passes them on to a histogram now and then, for the same reason as `Tallies` below."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._counts = [0] * (len(_SECONDS) + 1)
        self._sum = 0.0

    def add(self, seconds: Sequence[float]) -> None:
        """`values`: in ascending order."""
        spread(seconds, _SECONDS, self._counts)
        self._sum += sum(seconds)

    def exemplify(self, seconds: float, trace_id: str) -> None:
        """Notes an example of the values in its bucket. With several processes, the library keeps no examples."""
        exemplar = Exemplar({"trace_id": trace_id}, seconds, time.time())
        self._histogram._buckets[bisect_left(_SECONDS, seconds)].set_exemplar(exemplar)

    def tell(self) -> None:
        """The library has no public way to add several at once; a test compares it with `observe`."""
        for bucket, count in zip(self._histogram._buckets, self._counts, strict=True):
            if count:
                bucket.inc(count)
        self._histogram._sum.inc(self._sum)
        self._counts = [0] * len(self._counts)
        self._sum = 0.0


class Tallies:
    """Counts, and updates the metric once in each turn of the event loop. With several processes, a metric is in a
    shared file, to which every `inc` writes: that costs more than everything else in a refusal after the check of its
    token."""

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
    """Returns how many new orders this process has written since its start."""
    return int(REGISTRY.get_sample_value("seckill_orders_recorded_total", {"kind": "new"}) or 0)


def media_type(accept: str) -> str:
    """Returns the media type in which a caller that accepts this gets the metrics. Only OpenMetrics has exemplars."""
    return OPEN_METRICS if "application/openmetrics-text" in accept else MEDIA_TYPE


class Exposition:
    """All metrics as text. Making the text takes milliseconds, so it is made once a second at most, and callers in
    between get the same text."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _shared_folder()
        self._making = threading.Lock()
        self._made: dict[str, tuple[float, bytes]] = {}  # by media type: when it was made, and the text

    def known(self, media_type: str = MEDIA_TYPE) -> bytes | None:
        """Returns the text if it is new enough, at no cost, or None if `now` has to make it."""
        made_s, text = self._made.get(media_type, (-math.inf, b""))
        return text if time.monotonic() - made_s < MADE_EVERY_S else None

    def now(self, media_type: str = MEDIA_TYPE) -> bytes:
        """Returns the metrics of all processes that share the folder, or of this process."""
        with self._making:
            known = self.known(media_type)
            if known is None:
                generate = generate_open_metrics if media_type == OPEN_METRICS else generate_latest
                known = generate(self._registry())
                self._made[media_type] = time.monotonic(), known
            return known

    def samples(self) -> Iterator[Sample]:
        """Yields the present metrics one by one."""
        return (sample for family in self._registry().collect() for sample in family.samples)

    def _registry(self) -> CollectorRegistry:
        if self._folder is None:
            return REGISTRY
        _forget_the_dead(self._folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        registry.register(ShownSales(self._folder))
        return registry


def _forget_the_dead(folder: Path) -> None:
    """Forgets what a process had open, once it is gone, however it ended. Its counts stay."""
    for pattern in ("gauge_live*_*.db", "sales_*.json"):
        for written in folder.glob(pattern):
            pid = written.stem.rpartition("_")[2]
            if pid.isdecimal() and not _runs(int(pid)):
                written.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True
