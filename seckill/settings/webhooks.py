"""Settings about where webhooks may go."""

from dataclasses import dataclass, field
from typing import Literal

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    webhook_private: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: webhooks may go to loopback and private addresses, and to any port from 1024 on. `seckill up` has "
            "it on unless it is set to `off`.",
        ),
    )
