"""The trace of an order from the press to the shop's webhook: the `traceparent` of W3C's Trace Context.

It travels as text, beside the data to which it belongs. An unreadable one is ignored: no sale depends on it.
"""

import re

import msgspec

HEADER = "traceparent"
# Later versions begin in the same way and may have more after it.
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?")
_INVALID_VERSION = b"ff"
_FIRST_VERSION = b"00"


class Trace(msgspec.Struct, frozen=True):
    """A trace, and the span in it to which later spans belong."""

    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.sampled:02x}"


def read_trace(text: bytes) -> Trace | None:
    found = _TRACEPARENT.fullmatch(text)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _INVALID_VERSION or (version == _FIRST_VERSION and more is not None):
        return None
    if not (int(trace_id, 16) and int(span_id, 16)):
        return None
    return Trace(trace_id.decode(), span_id.decode(), bool(int(flags, 16) & 1))
