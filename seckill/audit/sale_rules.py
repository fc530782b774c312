"""What gate and ledger must agree on about who may buy when. The units of a round are compared for themselves."""

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
