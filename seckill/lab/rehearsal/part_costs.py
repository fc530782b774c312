"""Computes how busy each part was between two readings, and what a press costs it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from seckill.lab.rehearsal.watch import NodeFigures, WatchReading


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFigures:
    processes: int = 0
    busiest: float = 0.0  # the share of a core that its busiest process used
    cpu_s: float = 0.0  # of all its processes
    span_s: float = 0.0  # the time in which they used that, including some time before and after the load
    done: int = 0  # claims answered, or orders written
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigures:
    """None: the part cannot be seen from here."""

    lasted_s: float
    roles: dict[str, RoleFigures] = field(default_factory=dict)
    accepted: int | None = None
    backlog: int = 0
    lag_ms: int = 0
    gate_busiest: float | None = None
    gate_cpu_s: float | None = None
    gate_span_s: float = 0.0
    gate_bytes: int | None = None  # growth of its memory
    gate_primaries: int | None = None
    admit_ms: float | None = None  # time of one call to the gate
    admit_batch: float | None = None
    record_ms: float | None = None  # time of one transaction
    record_batch: float | None = None
    record_s: float | None = None  # time of all workers in transactions
    connections: int | None = None
    machine: float | None = None  # the share of all cores of the sending machine that was used
    machine_cores: int | None = None
    shared: bool = False  # the sending machine serves, too

    def role(self, name: str) -> RoleFigures:
        return self.roles.get(name, RoleFigures())


def between(
    before: WatchReading, at_end: WatchReading, after: WatchReading, lasted_s: float, own_host: str
) -> PartFigures:
    """`at_end`: read at the end of the load, which lasted `lasted_s`. `after`: read later, when the figures of every
    process cover the whole load."""
    gate_before, gate_after = before.gate, after.gate
    gate: dict[str, object] = {}
    if gate_before is not None and gate_after is not None and len(gate_before.cpu_s) == len(gate_after.cpu_s):
        used = [now - then for then, now in zip(gate_before.cpu_s, gate_after.cpu_s, strict=True)]
        gate = {
            "gate_busiest": round(max(used) / lasted_s, 3),
            "gate_cpu_s": sum(used),
            "gate_span_s": gate_after.at_s - gate_before.at_s,
            "gate_bytes": gate_after.memory_bytes - gate_before.memory_bytes,
            "gate_primaries": len(used),
        }
    connections = at_end.metrics.get("seckill_connections")
    return PartFigures(
        lasted_s=lasted_s,
        roles=_roles(before, after, lasted_s),
        accepted=None if before.accepted is None or after.accepted is None else after.accepted - before.accepted,
        backlog=at_end.backlog,
        lag_ms=at_end.lag_ms,
        admit_ms=_ratio(before, after, "seckill_admit_seconds_sum", "seckill_admit_seconds_count", 1000),
        admit_batch=_ratio(before, after, "seckill_admit_batch_size_sum", "seckill_admit_batch_size_count"),
        record_ms=_ratio(before, after, "seckill_record_seconds_sum", "seckill_record_batch_size_count", 1000),
        record_batch=_ratio(before, after, "seckill_record_batch_size_sum", "seckill_record_batch_size_count"),
        record_s=_grown(before, after, "seckill_record_seconds_sum"),
        connections=None if connections is None else int(connections),
        machine=_machine(before, after),
        machine_cores=after.machine_cores,
        shared=any(node.host == own_host for node in after.nodes.values()),
        **gate,  # type: ignore[arg-type]
    )


def _roles(before: WatchReading, after: WatchReading, lasted_s: float) -> dict[str, RoleFigures]:
    found: dict[str, RoleFigures] = {}
    for role in sorted({node.role for node in after.nodes.values()}):
        pairs = [
            (before.nodes[name], node)
            for name, node in after.nodes.items()
            if node.role == role and name in before.nodes and node.cpu_s >= before.nodes[name].cpu_s
        ]
        if pairs:
            used = [now.cpu_s - then.cpu_s for then, now in pairs]
            found[role] = RoleFigures(
                processes=len(pairs),
                busiest=round(max(used) / lasted_s, 3),
                cpu_s=sum(used),
                span_s=sum(now.at_s - then.at_s for then, now in pairs) / len(pairs),
                done=sum(_done(now) - _done(then) for then, now in pairs),
                memory_bytes=sum(now.memory_bytes for _, now in pairs),
            )
    return found


def _done(node: NodeFigures) -> int:
    return node.recorded if node.role == "worker" else node.claims


def _grown(before: WatchReading, after: WatchReading, name: str) -> float | None:
    """Also returns None if the counter has shrunk: behind a load balancer, another process may have answered."""
    if name not in before.metrics or name not in after.metrics:
        return None
    grown = after.metrics[name] - before.metrics[name]
    return grown if grown >= 0 else None


def _ratio(before: WatchReading, after: WatchReading, of: str, to: str, times: float = 1) -> float | None:
    above, below = _grown(before, after, of), _grown(before, after, to)
    return None if above is None or not below else round(above / below * times, 2)


def _machine(before: WatchReading, after: WatchReading) -> float | None:
    if before.cores is None or after.cores is None or after.cores[1] <= before.cores[1]:
        return None
    return round((after.cores[0] - before.cores[0]) / (after.cores[1] - before.cores[1]), 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU time in µs for each press or for each order; None: not seen."""

    api_us: float | None = None
    worker_us: float | None = None  # an order
    gate_us: float | None = None
    record_us: float | None = None  # an order: a worker's time in transactions
    gate_bytes: float | None = None  # an order, with its buyer
    orders: float = 1.0  # orders for each press
    held_s: float = 0.0  # how long a press and all that goes with it hold connections: connections over rate
    bytes_in: float = 0.0  # that the deployment receives for a press
    bytes_out: float = 0.0  # that the deployment sends for a press

    @property
    def known(self) -> bool:
        return self.api_us is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The figures of one phase from which costs are computed."""

    rate: float  # on average
    answered: int
    connections: int
    bytes_in: int
    bytes_out: int
    parts: PartFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Cores that all processes of a role, and the gate, use when there are no buyers."""

    roles: dict[str, float] = field(default_factory=dict)
    gate: float = 0.0

    @classmethod
    def of(cls, parts: PartFigures) -> "Idle":
        roles = {name: role.cpu_s / role.span_s for name, role in parts.roles.items() if role.span_s > 0}
        return cls(roles=roles, gate=(parts.gate_cpu_s or 0.0) / parts.gate_span_s if parts.gate_span_s > 0 else 0.0)

    def beyond(self, name: str, parts: PartFigures) -> float:
        """Returns the CPU time of a role that the load has cost."""
        role = parts.role(name)
        return max(0.0, role.cpu_s - self.roles.get(name, 0.0) * role.span_s)

    def beyond_gate(self, parts: PartFigures) -> float:
        return max(0.0, (parts.gate_cpu_s or 0.0) - self.gate * parts.gate_span_s)


# Phases count from this share of the highest rate on: the cost of a press depends on how many share a call, and so on
# the rate.
COUNTED_FROM = 0.8


def costs(measured: Sequence[Measured], idle: Idle) -> Costs:
    """Returns the costs in the phases with nearly the highest rate. `measured`: phases in which no part was full."""
    if not measured:
        return Costs()
    highest = max(each.rate for each in measured)
    counted = [each for each in measured if each.rate >= highest * COUNTED_FROM]
    presses = sum(each.parts.role("api").done for each in counted)
    orders = sum(each.parts.role("worker").done for each in counted)
    answered = sum(each.answered for each in counted)
    known_gate = [each for each in counted if each.parts.gate_cpu_s is not None]
    gate_presses = sum(each.parts.role("api").done for each in known_gate)
    gate_orders = sum(each.parts.role("worker").done for each in known_gate)
    known_records = [each for each in counted if each.parts.record_s is not None]
    return Costs(
        api_us=_each_us(sum(idle.beyond("api", each.parts) for each in counted), presses),
        worker_us=_each_us(sum(idle.beyond("worker", each.parts) for each in counted), orders),
        gate_us=_each_us(sum(idle.beyond_gate(each.parts) for each in known_gate), gate_presses),
        record_us=_each_us(
            sum(each.parts.record_s or 0.0 for each in known_records),
            sum(each.parts.role("worker").done for each in known_records),
        ),
        gate_bytes=sum(each.parts.gate_bytes or 0 for each in known_gate) / gate_orders if gate_orders else None,
        orders=orders / presses if presses else 1.0,
        held_s=max(each.connections / each.rate for each in counted),
        bytes_in=sum(each.bytes_in for each in counted) / answered if answered else 0.0,
        bytes_out=sum(each.bytes_out for each in counted) / answered if answered else 0.0,
    )


def _each_us(cpu_s: float, times: int) -> float | None:
    return round(cpu_s / times * 1e6, 1) if times > 0 and cpu_s > 0 else None
