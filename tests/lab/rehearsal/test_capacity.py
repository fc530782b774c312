"""The cost of a press for each part, and what a larger crowd needs by that."""

import json
import re
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from scripts.calculator_model import written
from seckill.lab.rehearsal.capacity import (
    API_MB,
    CONNECTIONS_EACH,
    KEEPER_MB,
    LEDGERS,
    MEASURED,
    PLANNED,
    PLANNED_BATCH,
    WORKER_MB,
    needs,
    needs_of_crowd,
)
from seckill.lab.rehearsal.part_costs import Costs, Idle, Measured, between, costs
from seckill.lab.rehearsal.watch import GateFigures, NodeFigures, WatchReading, metrics_in
from tests.fixtures import missing
from tests.lab.rehearsal.making import parts

DOCS = Path(__file__).parents[3] / "docs"

COSTS = Costs(api_us=50, worker_us=10, gate_us=20, record_us=100, gate_bytes=70, orders=0.8, held_s=0.5, bytes_out=250)


def node(role: str, cpu_s: float, at_s: float, *, claims: int = 0, recorded: int = 0) -> NodeFigures:
    return NodeFigures(role=role, host="h", at_s=at_s, cpu_s=cpu_s, memory_bytes=7, claims=claims, recorded=recorded)


BEFORE = WatchReading(
    at_s=0,
    nodes={"a": node("api", 10, 0, claims=5), "b": node("api", 20, 0), "w": node("worker", 1, 0)},
    accepted=3,
    metrics={"seckill_admit_seconds_sum": 1.0, "seckill_admit_seconds_count": 10, "seckill_record_seconds_sum": 4.0},
    gate=GateFigures(cpu_s=[1.0, 2.0], memory_bytes=1000, at_s=0),
    cores=(10.0, 20.0),
)
AFTER = WatchReading(
    at_s=5,
    nodes={
        "a": node("api", 11, 5, claims=1005),
        "b": node("api", 20.5, 5, claims=500),
        "w": node("worker", 1.2, 5, recorded=1000),
        "new": node("worker", 9, 5, recorded=9),
    },
    accepted=1003,
    metrics={"seckill_admit_seconds_sum": 1.5, "seckill_admit_seconds_count": 110, "seckill_record_seconds_sum": 3.0},
    gate=GateFigures(cpu_s=[1.2, 2.8], memory_bytes=81_000, at_s=5),
    cores=(19.0, 30.0),
)


def test_what_parts_tell_between_two_readings() -> None:
    found = between(BEFORE, replace(AFTER, lag_ms=40, backlog=3), AFTER, 4.0, "h")
    assert found.role("api").processes == 2
    assert found.role("api").busiest == 0.25
    assert found.role("api").cpu_s == pytest.approx(1.5)
    assert found.role("api").done == 1500
    assert found.role("worker").done == 1000, "one that has just been started is left out"
    assert (found.gate_busiest, found.gate_primaries, found.gate_bytes) == (0.2, 2, 80_000)
    assert found.admit_ms == 5.0
    assert found.record_s is None, "a counter that went back was another process's"
    assert (found.lag_ms, found.backlog) == (40, 3), "at the end of the load"
    assert found.machine == 0.9
    assert found.shared
    assert not between(BEFORE, AFTER, AFTER, 4.0, "elsewhere").shared


def test_costs_leave_out_what_is_used_when_nobody_is_there() -> None:
    found = between(BEFORE, AFTER, AFTER, 4.0, "h")
    measured = Measured(rate=300, answered=1500, connections=30, bytes_in=1_500_000, bytes_out=600_000, parts=found)
    cost = costs([measured], Idle(roles={"api": 0.15}, gate=0.02))
    assert cost.api_us == pytest.approx((1.5 - 0.75) / 1500 * 1e6)
    assert cost.worker_us == pytest.approx(0.2 / 1000 * 1e6)
    assert cost.gate_us == pytest.approx((1.0 - 0.1) / 1500 * 1e6)
    assert cost.gate_bytes == 80
    assert cost.orders == pytest.approx(1000 / 1500)
    assert (cost.held_s, cost.bytes_in, cost.bytes_out) == (0.1, 1000, 400)
    assert Idle.of(found).roles["api"] == pytest.approx(0.3)


def test_only_the_busier_phases_count() -> None:
    busy = Measured(rate=1000, answered=100, connections=1, bytes_in=0, bytes_out=0, parts=parts())
    idle = Measured(rate=700, answered=100, connections=1, bytes_in=0, bytes_out=0, parts=parts())
    assert costs([busy, idle], Idle()) == costs([busy], Idle())
    assert not costs([], Idle()).known


def test_ten_times_the_crowd_needs_ten_times_the_cores() -> None:
    small, large = needs(1_000, COSTS), needs(100_000, COSTS)
    assert small.cores == pytest.approx(1000 * (50 + 20 + 0.8 * 10) / 1e6, abs=0.01)
    assert (small.api, small.workers, small.primaries, small.lanes) == (1, 1, 1, 1)
    assert large.api == -(-100_000 * 50 // (1e6 * PLANNED))
    assert large.primaries == 3
    assert large.lanes == 3
    assert large.orders_per_s == 80_000
    assert large.transactions_at_once == 8
    assert large.network_mbit == 200
    assert large.connections == 50_000
    assert needs(1_000_000, replace(COSTS, api_us=1)).api == 500_000 // CONNECTIONS_EACH, "connections, too, need them"


def test_what_is_not_known_is_not_made_up() -> None:
    found = needs(1_000, replace(COSTS, gate_us=None, record_us=None, gate_bytes=None))
    assert (found.primaries, found.lanes, found.cores, found.transactions_at_once) == (None,) * 4
    assert found.api == 1


@pytest.mark.parametrize("page", ["capacity.md", "capacity.zh-CN.md"])
def test_the_table_in_the_docs_is_this_functions(page: str) -> None:
    text = (DOCS / page).read_text()
    for words in ("67 µs", "18 µs", "45 µs", "66 ", "1,657 ", " 1.08 "):
        assert words in text
    for rate in (10_000, 100_000, 1_000_000):
        each = needs(rate, MEASURED)
        assert each.cores is not None
        assert each.api is not None
        assert each.workers is not None
        cores = f"{each.cores:.1f}".removesuffix(".0")
        memory = each.api * API_MB + each.workers * WORKER_MB + KEEPER_MB
        row = (
            f"| {rate:,} | {each.api} | {each.workers} | {each.primaries} | {each.replicas} | {each.lanes} | {cores} |"
        )
        assert (
            f"{row} {each.orders_per_s:,.0f} | {each.connections:,} | {memory:,} | {each.network_mbit:,.0f} |" in text
        )


def test_how_far_the_model_is_off_is_what_its_table_says() -> None:
    """In each row the parts add up, the law of the page gives the prediction, and the error is the difference."""
    text = (DOCS / "capacity.md").read_text()
    law = [(float(claim), float(call)) for claim, call in re.findall(r"\| (\d+) \+ (\d+) / B µs", text)]
    assert [round(claim + call / PLANNED_BATCH) for claim, call in law] == [67, 18, 45]
    rows = re.findall(r"^\| \d \| \d \| [^|]+ \| ([\d |]+) \| ([+-]\d+) % \|$", text, re.MULTILINE)
    assert len(rows) == 11
    for figures, off in rows:
        batch, *parts, together, predicted = map(int, figures.split(" | "))
        assert sum(parts) == pytest.approx(together, abs=1)
        assert sum(claim + call / batch for claim, call in law) == pytest.approx(predicted, abs=2)
        assert (predicted / together - 1) * 100 == pytest.approx(int(off), abs=1)


CROWDS = [
    (1_000, 10, 100, "sqlite"),
    (100_000, 10, 1_000, "postgresql"),
    (1_000_000, 1, 2_000_000, "mariadb"),
    (7_654_321, 13, 54_321, "postgresql"),
    (3, 60, 1, "sqlite"),
]


def test_a_crowd_needs_what_its_rate_does() -> None:
    found = needs_of_crowd(1_000_000, 10, 1_000_000, "sqlite")
    assert found.needs == needs(100_000, MEASURED)
    assert (found.refused_per_s, found.database_cores, found.gate_mb) == (0, 0, 66)
    few = needs_of_crowd(1_000_000, 10, 1_000, "postgresql")
    assert (few.needs.orders_per_s, few.refused_per_s, few.needs.api) == (100, 99_900, found.needs.api)
    assert few.memory_mb < found.memory_mb


def test_the_calculator_knows_these_constants_and_no_others() -> None:
    assert (DOCS / "calculator-model.js").read_text() == written(), "run make calculator"
    assert not re.search(r"[0-9]{2,}", re.sub(r"1e[36]|#[0-9a-f]+", "", (DOCS / "calculator.js").read_text()))
    page = (DOCS / "calculator.md").read_text()
    assert all(f'value="{name}"' in page for name in LEDGERS)


def test_the_calculator_computes_what_this_function_does() -> None:
    """The calculator is the page's JavaScript, run by Node."""
    node = shutil.which("node")
    if node is None:
        missing("There is no Node, which runs the calculator's JavaScript")
    script = "".join((DOCS / name).read_text() for name in ("calculator-model.js", "calculator.js"))
    asked = f"{script}\nconsole.log(JSON.stringify({json.dumps(CROWDS)}.map((crowd) => seckillNeeds(...crowd))))"
    done = subprocess.run([node, "-"], input=asked, capture_output=True, text=True, check=True)
    for crowd, told in zip(CROWDS, json.loads(done.stdout), strict=True):
        found = needs_of_crowd(*crowd)
        expected = {**asdict(found.needs), **asdict(found)}
        for name in ("needs", "transactions_at_once", "gate_mb_per_million", "cores"):
            expected.pop(name)
        assert {name: told[name] for name in expected} == pytest.approx(expected)
        assert told["cores"] == pytest.approx(found.needs.cores, abs=0.006), "rounded half up or half to even"


def test_metrics_of_several_processes_are_added_up() -> None:
    text = '# HELP x\nseckill_connections 3.0\nseckill_admit_batch_size_sum{a="b"} 1e2\nother 5.0\n'
    found = metrics_in([text, text])
    assert found == {"seckill_connections": 6.0, "seckill_admit_batch_size_sum": 200.0}
