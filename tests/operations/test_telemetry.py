"""What the metrics promise beyond the library's: cheap histograms, and nothing of processes and sales that are gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Histogram

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
    for seconds in (0.0, 0.0005, 0.00051, 0.02, 0.2, 4.9, 5, 60):
        durations.add(seconds)
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
    assert found[0] == found[1]
    assert found[0]["x_count", None] == 8


def text_of(folder: Path) -> str:
    return Exposition(folder).now().decode()


def ran_and_ended(folder: Path, code: str) -> None:
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)


def test_a_process_that_is_gone_has_nothing_open_and_its_counts_stay(tmp_path: Path) -> None:
    """Killed as well: nobody has to say goodbye."""
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
