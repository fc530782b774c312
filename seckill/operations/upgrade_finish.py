"""Decides when entries with several orders may be written: as soon as no process is left that cannot read them, and no
longer when such a process is about to come back.

The previous version would set aside entries that it cannot read. So people declare the last step of an upgrade, when
all processes have the new version; from then on the gate refuses older ones. People also declare the first step of a
downgrade. A ledger that this version has set up needs neither: no older version ever used it.
"""

import asyncio
import time
from collections.abc import Collection
from typing import Protocol

from seckill.errors import NotPossible
from seckill.operations.presence import EVERY_S
from seckill.ports.board import Board
from seckill.ports.ledger import EntryFormLedger
from seckill.ports.queue_entry import TOGETHER, VERSION

BACK_WITHIN_S = 60.0
LOOK_EVERY_S = 0.2
# Three times as long as it takes a process to report itself.
REPORT_WITHIN_S = 3 * EVERY_S


class Forms(Protocol):
    """Tells the gate's lanes about it."""

    async def refuse_older(self) -> None: ...

    async def allow(self, lanes: Collection[int]) -> None: ...

    async def forbid(self, lanes: Collection[int]) -> None: ...

    async def shared(self, lanes: Collection[int]) -> int: ...

    async def admit_older(self) -> None: ...


async def finish_upgrade(
    ledger: EntryFormLedger,
    forms: Forms,
    board: Board,
    lanes: Collection[int],
    *,
    broker: bool = False,
    report_within_s: float = REPORT_WITHIN_S,
) -> None:
    """Raises NotPossible while there is a process that cannot read such entries. `broker`: a broker's messages have one
    order each, so with one, entries have one order as well."""
    before = await ledger.entry_form()
    # First older processes are refused, and then the running ones are looked at: any that came in before has reported
    # by then.
    await forms.refuse_older()
    await asyncio.sleep(report_within_s)
    _, seen = await board.reports()
    if older := sorted(f"{one.report.role} {one.report.node}" for one in seen if one.report.reads < TOGETHER):
        if before < TOGETHER:
            await forms.admit_older()
        raise NotPossible(f"These processes are of an older version: {', '.join(older)}. Replace them, then try again.")
    await ledger.set_entry_form(TOGETHER)
    if not broker:
        await forms.allow(await _all_of(ledger, lanes))


async def prepare_downgrade(
    ledger: EntryFormLedger, forms: Forms, lanes: Collection[int], within_s: float = BACK_WITHIN_S
) -> None:
    """When it returns, the previous version may start. Raises NotPossible if workers have not yet written the entries
    that it could not read."""
    await ledger.set_entry_form(VERSION)
    every = await _all_of(ledger, lanes)
    await forms.forbid(every)
    give_up_at_s = time.monotonic() + within_s
    while left := await forms.shared(every):
        if time.monotonic() >= give_up_at_s:
            raise NotPossible(
                f"{left} orders are queued in a form that the version before cannot read: let workers of this version "
                "write them, then try again."
            )
        await asyncio.sleep(LOOK_EVERY_S)
    await forms.admit_older()


async def _all_of(ledger: EntryFormLedger, lanes: Collection[int]) -> list[int]:
    return sorted({*lanes, *await ledger.lanes_in_use()})
