"""Settings about how the gate is divided, how durable its answers are, and how long to wait for it."""

from dataclasses import dataclass, field
from typing import Literal

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    lanes: int = field(
        default=16,
        metadata=about(
            kinds.whole(1, 256),
            "How many lanes there are. A round gets one of them, or as many as its sale asks for.",
        ),
    )
    durability: Literal["strict", "fast"] = field(
        default="strict",
        metadata=about(
            kinds.one_of("strict", "fast"),
            "`strict`: an order is on disk before its answer; `fast`: within a second after it.",
        ),
    )
    replica_acks: int | None = field(
        default=None,
        metadata=about(
            kinds.whole(0, 9),
            "Replicas that must have an order before its answer; when empty: 1 with `strict` on a cluster or behind "
            "Sentinel, otherwise 0.",
            "replicas",
        ),
    )
    gate_timeout_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0.01, 60), "Wait for the gate after which a claim's result is `unknown`.", "seconds"
        ),
    )
