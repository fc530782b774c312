"""What a gate must do for a round that has a share in each of several lanes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from seckill.domain.item import NO_ITEM
from seckill.domain.sale import Round, RoundRef
from seckill.ports.gate import NO_ITEMS, Gate, Opening, Sold


@dataclass(frozen=True, slots=True)
class Carried:
    """Units that a share gets and gives away from the start, by the lane from or to which they move. With items, only
    the values of the items are set."""

    sent: Mapping[int, int] = field(default_factory=dict)
    got: Mapping[int, int] = field(default_factory=dict)
    items: Mapping[int, "Carried"] = field(default_factory=dict)

    @property
    def units(self) -> int:
        of_items = sum(carried.units for carried in self.items.values())
        return sum(self.got.values()) - sum(self.sent.values()) + of_items


NOTHING_CARRIED = Carried()


class ShareGate(Gate, Protocol):
    """Only knows rounds with one lane, or shares of rounds, which it treats alike. Every backend is one of these;
    `engine/rounds/shared_gate.py` combines them into whole rounds."""

    async def open_round(self, round_: Round, opened_ms: int = 0) -> Opening:
        """`opened_ms`: the opening that this share is part of. 0: it is the first, or the only one."""

    async def finish_rebuild(
        self,
        ref: RoundRef,
        token: str,
        admitted: int,
        released: int,
        items: Mapping[int, Sold] = NO_ITEMS,
        opened_ms: int = 0,
        carried: Carried = NOTHING_CARRIED,
    ) -> int | None: ...

    async def give(self, ref: RoundRef, epoch: int, to: int, sent: int, units: int, item: int = NO_ITEM) -> int | None:
        """Sends up to `units` of the remaining units to another lane, if no more than `sent` units were ever sent
        there. Returns how many were ever sent there. With items, all numbers are of that item. Returns None if the
        share is not here in this epoch, or not open."""

    async def take(self, ref: RoundRef, epoch: int, origin: int, sent: int, item: int = NO_ITEM) -> int | None:
        """Takes all units that were sent from there and have not arrived yet. Returns how many. Returns None if the
        share is not here in this epoch, or not open."""
