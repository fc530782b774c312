"""The keeper's continuous audit."""

from dataclasses import dataclass, field
from typing import Literal

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    audit_every_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0, 86_400), "How often the keeper checks that everything adds up; 0: never.", "seconds"
        ),
    )
    audit_pauses: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: the keeper pauses a sale when its audit finds units or orders that do not add up, and resumes it if "
            "that turns out to be false.",
        ),
    )
