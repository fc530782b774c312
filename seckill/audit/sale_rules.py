"""Compares the rules about who may buy when, on which gate and ledger must agree. Units are compared elsewhere."""

from typing import NamedTuple


class Rules(NamedTuple):
    limit: int
    cool_down_s: int
    begins_ms: int
    ends_ms: int
    status: str

    def __str__(self) -> str:
        window = f"from {self.begins_ms} to {self.ends_ms}"
        return f"limit {self.limit}, cool-down {self.cool_down_s}, {window}, {self.status}"
