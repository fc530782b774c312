"""The codes that sales give: uploaded into a pool, given with `paid`, redeemed once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Sale
from seckill.domain.voucher import Pool, Voucher


class ClashKind(StrEnum):
    SAME_UPLOAD = "same_upload"
    OTHER_UPLOAD = "other_upload"  # another upload under way
    POOL = "pool"  # of this sale or another: a code means one thing everywhere


@dataclass(frozen=True, slots=True)
class Clash:
    """A line with a code that exists already. `earlier`: the line that has it, if it is in the same upload."""

    line: int
    kind: ClashKind
    earlier: int | None = None


class RedeemOutcome(StrEnum):
    DONE = "done"
    # Nothing was changed:
    UNKNOWN = "unknown"
    NOT_GIVEN = "not_given"
    REDEEMED = "redeemed"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Redeemed:
    """`voucher`: as it is now; None if there is none."""

    outcome: RedeemOutcome
    voucher: Voucher | None


class UploadLedger(Protocol):
    """An upload arrives in portions, each in a transaction of its own, so that no one has to wait for it. Its codes
    count all at once when it is complete. One that is given up, or has been silent for `idle_s`, never becomes complete
    and is cleared away little by little."""

    async def begin_upload(self, sale_id: int, item: int = NO_ITEM) -> int:
        """`item`: the only item that the codes are for."""

    async def add_codes(self, upload_id: int, codes: Sequence[tuple[int, str]]) -> Sequence[Clash]:
        """Adds codes with their lines. If any of them exists already, none is added. Raises UploadGivenUp."""

    async def complete_upload(self, upload_id: int) -> Sale | None:
        """Returns the sale if a round of it can open now that could not before. Raises UploadGivenUp."""

    async def give_up_upload(self, upload_id: int) -> None: ...

    async def clear_uploads(self, idle_s: float, count: int) -> int:
        """Gives up uploads that have been silent for that long, and clears away up to `count` codes of given-up ones.
        Returns how many."""


class PoolLedger(Protocol):
    """What becomes of the codes of complete uploads."""

    async def cover_rounds(self) -> Sequence[Sale]:
        """Lets rounds open that waited for codes and have enough now, because an earlier round of their sale is over
        and did not need all of its codes. Returns their sales."""

    async def pool(self, sale_id: int) -> Pool: ...

    async def show(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[Voucher]]:
        """The codes of these orders, void ones too. They count as shown from now on."""

    async def voucher(self, code: str) -> Voucher | None: ...

    async def redeem(self, code: str) -> Redeemed:
        """Redeems a code once, however many ask at the same time."""


class VoucherLedger(UploadLedger, PoolLedger, Protocol):
    """Both parts."""
