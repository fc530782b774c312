"""What OpenTelemetry's own variables say: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/

The SDK reads most of them itself: addresses, headers and certificates of the collector, the name of the service, the
length of the queue. This module reads those that decide whether anything is traced, and how much.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

# By default the SDK would trace every request. One in a thousand says enough about a crowd.
RATIO = 0.001
_PARENT_BASED = "parentbased_"
_SAMPLERS = {"always_on": 1.0, "always_off": 0.0, "traceidratio": None}
_PROTOCOL = "http/protobuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    endpoint: str = ""  # where spans go to; empty: nothing is traced
    ratio: float = RATIO  # of the requests whose callers have not decided
    heeds_parent: bool = True  # the caller's decision to trace or not counts for us
    problems: tuple[str, ...] = ()  # sentences

    @property
    def on(self) -> bool:
        return bool(self.endpoint)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Tracing":
        """Never raises: a sale must not fail to begin because it cannot be watched."""
        said = {name: value.strip() for name, value in environ.items() if name.startswith("OTEL_")}
        disabled = said.get("OTEL_SDK_DISABLED", "").lower() == "true"
        if disabled or said.get("OTEL_TRACES_EXPORTER") not in (None, "", "otlp"):
            return cls()
        endpoint = said.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
        if not endpoint and (base := said.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")):
            endpoint = f"{base.rstrip('/')}/v1/traces"
        if not endpoint:
            return cls()
        problems: list[str] = []
        ratio, heeds_parent = _sampling(said, problems)
        protocols = [said.get(f"OTEL_EXPORTER_OTLP_{name}", "") for name in ("TRACES_PROTOCOL", "PROTOCOL")]
        protocol = next(filter(None, protocols), _PROTOCOL)
        if protocol != _PROTOCOL:
            problems.append(
                f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}, and only {_PROTOCOL} is spoken, to port 4318."
            )
        return cls(endpoint=endpoint, ratio=ratio, heeds_parent=heeds_parent, problems=tuple(problems))


def _sampling(said: Mapping[str, str], problems: list[str]) -> tuple[float, bool]:
    sampler = said.get("OTEL_TRACES_SAMPLER", "").lower() or f"{_PARENT_BASED}traceidratio"
    heeds_parent = sampler.startswith(_PARENT_BASED)
    name = sampler.removeprefix(_PARENT_BASED)
    if name not in _SAMPLERS:
        problems.append(f"OTEL_TRACES_SAMPLER is {sampler!r}, which is not known here: one in {1 / RATIO:g} is traced.")
        return RATIO, True
    if (certain := _SAMPLERS[name]) is not None:
        return certain, heeds_parent
    text = said.get("OTEL_TRACES_SAMPLER_ARG", "")
    try:
        ratio = float(text or RATIO)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:  # false for nan
        problems.append(f"OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not {text!r}: {RATIO:g} is taken.")
        return RATIO, heeds_parent
    return ratio, heeds_parent
