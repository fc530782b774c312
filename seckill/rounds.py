"""Bringing a round from the ledger into the gate, once, and keeping its rules up to date there.

A gate that has lost a round must never be given the full stock a second time. So it goes in three steps, each of which
may be repeated after a crash:

1. the gate creates the round, not yet open to anybody (harmless if it exists);
2. the ledger notes that the round was opened;
3. the gate gets the rules of the newest revision, and with the first of them opens.

Before step 2 nobody can have been admitted, so creating it again is right. After step 2 it is never created again: a
gate without the round is then a gate that lost its data, and refuses until it has been rebuilt from the ledger.
"""

from enum import StrEnum

import structlog

from seckill.domain import Round
from seckill.ports import Gate, Ledger, Opening, Update

log = structlog.get_logger()


class Sync(StrEnum):
    DONE = "done"
    LOST = "lost"


async def bring_to_gate(round_: Round, gate: Gate, ledger: Ledger) -> Sync:
    if round_.opened_ms is None:
        opening = await gate.open_round(round_)
        if opening in (Opening.OTHER_EPOCH, Opening.REMNANT):
            return _lost(round_, opening)
        await ledger.mark_opened(round_.id, round_.epoch)
        if opening is Opening.CREATED:
            log.info("round opened", round=round_.id, sale=round_.sale_id, units=round_.total, lane=round_.lane)
    update = await gate.update_round(round_)
    if update in (Update.MISSING, Update.OTHER_EPOCH):
        return _lost(round_, update)
    await ledger.mark_synced(round_.id, round_.revision)
    return Sync.DONE


def _lost(round_: Round, found: Opening | Update) -> Sync:
    log.error(
        "the gate has lost a round: it refuses with not_ready",
        round=round_.id,
        epoch=round_.epoch,
        found=found,
    )
    return Sync.LOST
