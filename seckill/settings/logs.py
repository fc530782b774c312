"""Settings about what is logged, and in which form."""

from dataclasses import dataclass, field
from typing import Literal

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    log_format: Literal["auto", "json", "console"] = field(
        default="auto",
        metadata=about(
            kinds.one_of("auto", "json", "console"),
            "`json`, `console` for people, or `auto`: for people when there is a terminal.",
        ),
    )
    log_level: Literal["debug", "info", "warning", "error"] = field(
        default="info",
        metadata=about(
            kinds.one_of("debug", "info", "warning", "error"),
            "The least important events that are logged: `debug`, `info`, `warning` or `error`.",
        ),
    )
