"""Records how long each step of a traced order took. It never raises, and never waits."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Protocol

Facts = Mapping[str, str | int]


class TraceSpanKind(Enum):
    """The kinds of spans, as in OpenTelemetry."""

    INTERNAL = auto()
    SERVER = auto()
    CLIENT = auto()
    PRODUCER = auto()
    CONSUMER = auto()


class TraceSpan(Protocol):
    """One step, from when it was begun to `end`."""

    @property
    def context(self) -> str:
        """Returns the `traceparent` for the next steps."""

    @property
    def trace_id(self) -> str: ...

    def note(self, facts: Facts) -> None: ...

    def fail(self, reason: str) -> None: ...

    def end(self) -> None: ...


class Tracer(Protocol):
    def begin(
        self,
        name: str,
        parent: str,
        facts: Facts,
        *,
        kind: TraceSpanKind = TraceSpanKind.INTERNAL,
        began_ms: int | None = None,
    ) -> TraceSpan:
        """`parent`: a `traceparent`; empty: a new trace. `began_ms`: when it began, if not now."""
