"""What a rate needs, by what a press costs each part. Pure, and the same for rehearsals and for docs/capacity.md."""

import math
from dataclasses import dataclass

from seckill.lab.rehearsal.parts import Costs

# No process is planned to use more of a core than this: crowds are not even, and the rest is for what goes wrong.
PLANNED = 0.7
# Connections that one API process takes, unless it is set otherwise.
CONNECTIONS_EACH = 50_000
MBIT = 1e6 / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """For so many presses a second. None: a cost of it is not known."""

    rate: float
    api: int | None  # processes
    workers: int | None
    primaries: int | None  # servers of the gate, each with a core of its own
    lanes: int | None  # of the sale, so that it is spread over them
    cores: float | None  # that all of these use, without the database
    orders_per_s: float  # that the database has to take
    transactions_at_once: float | None  # that are under way in it
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
        lanes=None if primaries is None else max(primaries, workers or 1),
        cores=round(sum(known), 2) if len(known) == 3 else None,
        orders_per_s=round(orders, 1),
        transactions_at_once=None if costs.record_us is None else round(orders * costs.record_us / 1e6, 2),
        connections=connections,
        network_mbit=round(rate * (costs.bytes_in + costs.bytes_out) / MBIT, 1),
        gate_mb_per_million=None if costs.gate_bytes is None else round(max(0.0, costs.gate_bytes), 1),
    )


def _processes(cores: float) -> int:
    return max(1, math.ceil(cores / PLANNED - 1e-9))
