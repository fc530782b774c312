"""Computes what a rate of presses needs, from what a press costs each part. Pure. Rehearsals, docs/capacity.md and the
calculator on that page use the same model; `model` is all that the page knows."""

import math
from dataclasses import dataclass, replace
from typing import Any

from seckill.lab.rehearsal.part_costs import Costs

# The share of a core that each process is planned to use: crowds are not even, and the rest is a reserve for trouble.
PLANNED = 0.7
# Connections that one API process takes by default.
CONNECTIONS_EACH = 50_000
MBIT = 1e6 / 8
# How many claims are planned to share a call to the gate. With fewer, each claim costs more; once a part is full, more
# of them wait for the same call.
PLANNED_BATCH = 20
# The costs of a claim with such batches and with SQLite in the worker, from docs/capacity.md.
MEASURED = Costs(api_us=67, gate_us=18, worker_us=45, gate_bytes=66, held_s=1.08, bytes_in=1657)


@dataclass(frozen=True, slots=True)
class LedgerCosts:
    """µs of a processor's time for an order."""

    worker_us: float
    database_us: float  # in a separate server


# docs/speed.md for PostgreSQL, docs/backends.md for MariaDB: a batch of 500 took 15 and 20 ms.
LEDGERS = {
    "sqlite": LedgerCosts(MEASURED.worker_us or 0, 0),
    "postgresql": LedgerCosts(12, 33),
    "mariadb": LedgerCosts(30, 40),
}
# MB of memory that a process uses after it has worked for a while: docs/speed.md.
API_MB, WORKER_MB, KEEPER_MB = 108, 80, 93


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a rate of presses needs. None: one of the costs behind the figure is not known."""

    rate: float
    api: int | None  # processes
    workers: int | None
    primaries: int | None  # servers of the gate, each with a core of its own
    replicas: int | None  # one for each primary
    lanes: int | None  # of the sale, which spread it over the primaries
    cores: float | None  # that all of these use together, without the database
    orders_per_s: float  # that the database has to take
    transactions_at_once: float | None  # under way in the database
    connections: int
    network_mbit: float  # into and out of the deployment, together
    gate_mb_per_million: float | None  # memory for each million buyers with an order


def needs(rate: float, costs: Costs) -> Needs:
    orders = rate * costs.orders
    connections = math.ceil(rate * costs.held_s)
    api_cores = None if costs.api_us is None else rate * costs.api_us / 1e6
    worker_cores = None if costs.worker_us is None else orders * costs.worker_us / 1e6
    gate_cores = None if costs.gate_us is None else rate * costs.gate_us / 1e6
    api = None if api_cores is None else max(_processes(api_cores), math.ceil(connections / CONNECTIONS_EACH))
    workers = None if worker_cores is None else _processes(worker_cores)
    primaries = None if gate_cores is None else _processes(gate_cores)
    known = [cores for cores in (api_cores, worker_cores, gate_cores) if cores is not None]
    return Needs(
        rate=rate,
        api=api,
        workers=workers,
        primaries=primaries,
        replicas=primaries,
        lanes=None if primaries is None else max(primaries, workers or 1),
        cores=round(sum(known), 2) if len(known) == 3 else None,
        orders_per_s=round(orders, 1),
        transactions_at_once=None if costs.record_us is None else round(orders * costs.record_us / 1e6, 2),
        connections=connections,
        network_mbit=round(rate * (costs.bytes_in + costs.bytes_out) / MBIT, 1),
        gate_mb_per_million=None if costs.gate_bytes is None else round(max(0.0, costs.gate_bytes), 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdNeeds:
    """What a crowd needs that presses within some seconds, while the units last."""

    needs: Needs
    refused_per_s: float
    database_cores: float
    gate_mb: float  # when all is sold
    memory_mb: float  # of the processes and the gate, without the database


def needs_of_crowd(buyers: int, seconds: float, units: int, ledger: str) -> CrowdNeeds:
    """`ledger`: one of `LEDGERS`. Assumes that every buyer presses once, evenly spread, and gets one unit."""
    cost, orders = LEDGERS[ledger], min(units, buyers)
    costs = replace(MEASURED, worker_us=cost.worker_us, orders=orders / buyers)
    found = needs(buyers / seconds, costs)
    gate_mb = orders * (costs.gate_bytes or 0) / 1e6
    return CrowdNeeds(
        needs=found,
        refused_per_s=round(found.rate - found.orders_per_s, 1),
        database_cores=round(orders / seconds * cost.database_us / 1e6, 2),
        gate_mb=round(gate_mb, 1),
        memory_mb=round((found.api or 0) * API_MB + (found.workers or 0) * WORKER_MB + KEEPER_MB + gate_mb, 1),
    )


def model() -> dict[str, Any]:
    """Returns every constant of the model."""
    return {
        "planned": PLANNED,
        "connectionsEach": CONNECTIONS_EACH,
        "apiUs": MEASURED.api_us,
        "gateUs": MEASURED.gate_us,
        "gateBytes": MEASURED.gate_bytes,
        "heldS": MEASURED.held_s,
        "pressBytes": MEASURED.bytes_in + MEASURED.bytes_out,
        "ledgers": {
            name: {"workerUs": each.worker_us, "databaseUs": each.database_us} for name, each in LEDGERS.items()
        },
        "memoryMb": {"api": API_MB, "worker": WORKER_MB, "keeper": KEEPER_MB},
    }


def _processes(cores: float) -> int:
    return max(1, math.ceil(cores / PLANNED - 1e-9))
