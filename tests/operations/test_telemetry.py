"""The metrics promise more than the library's: cheap histograms, and nothing of processes and sales that are gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from seckill import telemetry
from seckill.telemetry import Durations, Exposition, SaleReading, SalesReading, ShownSales

READING = SaleReading(
    sale="s_1",
    currency="EUR",
    units=9,
    available=None,
    sold=3,
    unpaid=2,
    paid=1,
    taken_cents=1250,
    waiting=0,
    orders=3,
    lapsed_share=0.5,
)


def test_durations_told_at_once_are_those_that_were_observed_one_by_one() -> None:
    registries = CollectorRegistry(), CollectorRegistry()
    one, other = (
        Histogram("x", "x", ["a"], registry=registry, buckets=telemetry._SECONDS).labels("b") for registry in registries
    )
    durations = Durations(one)
    for several in ([0.0, 0.0, 0.0005, 0.00051, 0.02, 0.2, 4.9, 5, 60], [0.3], [60, 61], [0.0004, 0.4]):
        durations.add(several)
        for seconds in several:
            other.observe(seconds)
    durations.tell()
    durations.tell()  # nothing more
    found = [
        {
            (s.name, s.labels.get("le")): s.value
            for m in r.collect()
            for s in m.samples
            if not s.name.endswith("_created")
        }
        for r in registries
    ]
    assert found[0] == pytest.approx(found[1])  # sums of fractions, added up in another order
    assert found[0]["x_count", None] == 14


def test_an_example_stands_in_its_bucket() -> None:
    registry = CollectorRegistry()
    durations = Durations(Histogram("x", "x", ["a"], registry=registry, buckets=telemetry._SECONDS).labels("b"))
    durations.add([0.03])
    durations.exemplify(0.03, "f" * 32)
    durations.tell()
    text = generate_latest(registry).decode()  # type: ignore[no-untyped-call]
    [line] = [line for line in text.splitlines() if "trace_id" in line]
    assert line.startswith('x_bucket{a="b",le="0.05"} 1.0 # {trace_id="' + "f" * 32 + '"} 0.03 ')


def test_open_metrics_has_the_same_figures_and_only_who_asks_for_it_gets_it(tmp_path: Path) -> None:
    """Prometheus asks for it; what a rule or a dashboard names is there under the same name."""
    asked = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
    assert telemetry.media_type(asked) == telemetry.OPEN_METRICS
    assert {telemetry.media_type(accept) for accept in ("", "*/*", "text/plain")} == {telemetry.MEDIA_TYPE}
    ran_and_ended(
        tmp_path, "from seckill.telemetry import *; DEAD_LETTERS.inc(3); ANSWER_SECONDS.labels('x').observe(1)"
    )
    for folder in (None, tmp_path):
        exposition = Exposition(folder)
        open_text = exposition.now(telemetry.OPEN_METRICS).decode()
        assert exposition.known(telemetry.OPEN_METRICS) == open_text.encode()
        plain, opened = (
            {(sample.name, *sorted(sample.labels.items())) for family in families for sample in family.samples}
            for families in (
                text_families(exposition.now().decode()),
                open_families(open_text),  # type: ignore[no-untyped-call]
            )
        )
        assert plain == opened
        assert len(plain) > 10


def text_of(folder: Path) -> str:
    return Exposition(folder).now().decode()


def ran_and_ended(folder: Path, code: str) -> None:
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)


def test_a_process_that_is_gone_has_nothing_open_and_its_counts_stay(tmp_path: Path) -> None:
    """Holds for killed processes as well: they need no clean end."""
    code = (
        "import os; from seckill.telemetry import *; CONNECTIONS.set(7); DEAD_LETTERS.inc(3);"
        "SALES.show(SalesReading(on=2)); os._exit(9 - 9)"
    )
    ran_and_ended(tmp_path, code)
    text = text_of(tmp_path)
    assert "seckill_dead_letters_total 3.0" in text
    assert "seckill_connections" not in text
    assert "seckill_sales_on 0.0" in text


def test_sales_are_shown_by_whoever_serves_the_folder(tmp_path: Path) -> None:
    """Here: written by this process, which lives, and read by way of the file."""
    ShownSales(tmp_path).show(SalesReading(on=1, shown=[READING]))
    text = text_of(tmp_path)
    assert 'seckill_sale_taken_cents{currency="EUR",sale="s_1"} 1250.0' in text
    assert 'seckill_lapsed_share{sale="s_1"} 0.5' in text
    assert "seckill_sale_available{" not in text, "the gate does not have the round"
    ShownSales(tmp_path).show(SalesReading())
    assert "s_1" not in text_of(tmp_path), "it is over"


@pytest.mark.parametrize("shared", [True, False])
def test_figures_that_are_not_renewed_are_no_longer_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """The keeper hangs: how the sale stands is not known."""
    sales = ShownSales(tmp_path if shared else None)
    sales.show(SalesReading(on=1, shown=[READING]))
    assert [s.value for m in sales.collect() for s in m.samples if s.name == "seckill_sale_units"] == [9]
    monkeypatch.setattr(telemetry, "SALES_FRESH_S", 0.0)
    assert [s.value for m in sales.collect() for s in m.samples if s.name == "seckill_sale_units"] == []
