"""Settings about who may read the metrics, and how much is traced."""

from dataclasses import dataclass, field
from typing import Literal

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    metrics: Literal["public", "operator"] = field(
        default="operator",
        metadata=about(
            kinds.one_of("public", "operator"),
            "Who may read `/metrics` on the API's port: those with the admin key, or everybody, who then learns "
            "exactly how much is sold.",
        ),
    )
    metrics_port: int | None = field(
        default=None,
        metadata=about(
            kinds.whole(1, 65_535),
            "Port on which a role serves `/metrics`, `/healthz` and `/readyz` without a key, or `seckill up` "
            "those of all roles; when empty, none.",
        ),
    )
    metrics_host: str = field(
        default="127.0.0.1",
        metadata=about(str, "Address of that port; one that strangers cannot reach."),
    )
    traces_per_second: int = field(
        default=20,
        metadata=about(
            kinds.whole(1, 10_000),
            "Claims that each API process traces in a second at most, of those that it chooses itself and of those "
            "whose callers ask for it; see OTEL_EXPORTER_OTLP_ENDPOINT.",
            "claims",
        ),
    )
