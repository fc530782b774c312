"""Makes phases of imaginary rehearsals."""

from typing import Any

from seckill.lab.rehearsal.crowd import Phase, Shape
from seckill.lab.rehearsal.judgement import Judged, judge
from seckill.lab.rehearsal.part_costs import PartFigures, RoleFigures
from seckill.lab.rehearsal.sender_messages import BOUNDS_S, PhaseSeen, note


def buckets(**waits_ms: int) -> list[int]:
    """`ms_20=99`: 99 answers of 20 ms."""
    made = [0] * (len(BOUNDS_S) + 1)
    for name, count in waits_ms.items():
        for _ in range(count):
            note(made, int(name.removeprefix("ms_")) / 1000)
    return made


def seen(**facts: Any) -> PhaseSeen:
    made: dict[str, Any] = {
        "visits": 100,
        "pressed": 100,
        "outcomes": {"accepted": 100},
        "waits": buckets(ms_20=100),
        "late": buckets(ms_1=100),
        "cpu": [0.2],
        "took_s": 1.0,
        "connections": 10,
    }
    return PhaseSeen(**(made | facts))


def parts(*, api: float = 0.3, worker: float = 0.1, **facts: Any) -> PartFigures:
    roles = {
        "api": RoleFigures(processes=2, busiest=api, cpu_s=0.02, span_s=1.0, done=100, memory_bytes=1),
        "worker": RoleFigures(processes=1, busiest=worker, cpu_s=0.004, span_s=1.0, done=80, memory_bytes=1),
    }
    made: dict[str, Any] = {"lasted_s": 1.0, "roles": roles, "gate_busiest": 0.2, "machine": 0.5}
    return PartFigures(**(made | facts))


def steady(rate: float, seconds: float = 1.0) -> Phase:
    return Phase(shape=Shape.STEADY, rate=rate, seconds=seconds)


def wave(rate: float, seconds: float = 1.0) -> Phase:
    return Phase(shape=Shape.WAVE, rate=rate, seconds=seconds)


def good(phase: Phase) -> Judged:
    return judge(phase, seen(), parts())


def slow(phase: Phase, **facts: Any) -> Judged:
    return judge(phase, seen(waits=buckets(ms_3000=100)), parts(**facts))
