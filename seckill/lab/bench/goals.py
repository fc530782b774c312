"""The goals of the engine, and whether it reached them. Pure."""

from collections.abc import Mapping
from typing import Any

# Ratio → the lowest value that is good enough.
GOALS: Mapping[str, float] = {
    "accept_to_plain_port": 15,
    "persist_to_plain_persist": 60,
    "accept_to_http_ceiling": 0.4,
    "accept_to_native_http": 0.6,
    "accept_to_gate_ceiling": 0.7,
    "accept_to_gateway": 1.5,
    "refuse_to_http_ceiling": 0.8,
    "refuse_to_native_http": 0.8,
    "persist_to_accept": 1.0,
    "accept_at_1m_to_accept": 0.95,
    "join_to_accept": 0.5,
}
# Ratio → the highest value that is good enough.
LIMITS: Mapping[str, float] = {
    "drain_s": 2,
    "backlog_s": 2,
    "refuse_p99_to_p50": 3,
    "memory_per_buyer_bytes": 70,
    "start_s": 1.5,
    "memory_mb": 200,
}
CPU_US_MAX = {"sqlite": 45.0}
CPU_US_MAX_WITH_A_SERVER = 60.0


def judged(found: Mapping[str, Any]) -> list[tuple[str, float, str, bool]]:
    """Returns, for each goal that was measured: its name, the figure, the goal, and whether it was reached."""
    every = {**found["ratios"], **{name: found[name] for name in ("drain_s", "start_s", "memory_mb")}}
    every["cpu_us"] = found["cpu_us"]["all"]
    values = {name: value for name, value in every.items() if value is not None}
    limits = {**LIMITS, "cpu_us": CPU_US_MAX.get(found["run"]["ledger"], CPU_US_MAX_WITH_A_SERVER)}
    least = [(name, values[name], f"{goal:g}", values[name] >= goal) for name, goal in GOALS.items() if name in values]
    most = [
        (name, values[name], f"at most {goal:g}", values[name] <= goal)
        for name, goal in limits.items()
        if name in values
    ]
    return least + most
