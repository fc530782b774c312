"""Brings a round from the ledger into the gate, once, and keeps its rules up to date there.

A gate that has lost a round must never get the full stock a second time. So there are three steps, each of which may be
repeated after a crash:

1. the gate creates the round, not yet open to buyers, and says when that was (harmless if it exists);
2. the ledger notes this opening, unless it has noted another;
3. the gate gets the newest rules, and with the first of them opens, if it is the opening that was noted.

Before step 2 no buyer can have been admitted, so creating the round again is right. After step 2 no other opening
counts: a gate without the round, or with one that a slow process created again, has lost its data. It refuses claims
until the round has been rebuilt from the ledger.
"""

from dataclasses import replace
from enum import StrEnum

import structlog

from seckill.domain.sale import Round
from seckill.errors import GateUnavailable
from seckill.ports.gate import Found, GateStatus, OpeningGate, Update
from seckill.ports.ledger import OpeningLedger, SyncLedger

log = structlog.get_logger()

FIRST_EPOCH = 1


class Sync(StrEnum):
    DONE = "done"
    LOST = "lost"


class RefusedRounds:
    """Rounds that the gate refuses. They do not hold up the others, and each is logged once."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def tell(self, round_: Round, error: GateUnavailable) -> None:
        if round_.id not in self._told:
            log.error("the gate refuses a round", round=round_.id, reason=str(error))
        self._told.add(round_.id)

    def discard(self, round_: Round) -> None:
        self._told.discard(round_.id)


class RoundOpener:
    def __init__(self, gate: OpeningGate, ledger: SyncLedger, refused: RefusedRounds) -> None:
        self._gate = gate
        self._ledger = ledger
        self._refused = refused
        # rounds whose opening is noted but which the gate did not have when it got their rules
        self._not_there: set[int] = set()

    async def step(self) -> int:
        """Opens rounds that are not open yet and passes on operators' changes. Returns how many rounds it brought up to
        date."""
        done = 0
        for round_ in await self._ledger.rounds_to_sync():
            try:
                synced = await bring_to_gate(round_, self._gate, self._ledger)
            except GateUnavailable as error:
                self._refused.tell(round_, error)
            else:
                self._refused.discard(round_)
                if synced is Sync.DONE:
                    done += 1
                else:
                    self._not_there.add(round_.id)
        return done

    def is_new(self, round_: Round) -> bool:
        """Whether the round is missing because it has not been opened yet, which is no loss. But a round that was lost
        while it was being opened has no rules in the gate and never gets any unless it is rebuilt."""
        if round_.epoch > FIRST_EPOCH or round_.synced_revision > 0:
            return False
        return round_.opened_ms is None or round_.id not in self._not_there


async def bring_to_gate(round_: Round, gate: OpeningGate, ledger: OpeningLedger) -> Sync:
    if round_.opened_ms is None and round_.epoch > FIRST_EPOCH:
        return _lost(round_, Update.MISSING)  # it must be rebuilt, never filled anew
    if round_.opened_ms is None:
        opening = await gate.open_round(round_)
        if opening.found is Found.ROUND and await _is_of_another(round_, gate, ledger):
            await gate.forget(round_.ref)
            return _lost(round_, opening.found)
        if opening.found in (Found.OTHER_EPOCH, Found.REMNANT):
            return _lost(round_, opening.found)
        noted_ms = await ledger.mark_opened(round_.id, round_.epoch, opening.opened_ms)
        if noted_ms is None:
            return _lost(round_, Found.OTHER_EPOCH)
        round_ = replace(round_, opened_ms=noted_ms)
    update = await gate.update_round(round_)
    if update in (Update.MISSING, Update.OTHER_EPOCH, Update.OTHER_OPENING):
        return _lost(round_, update)
    await ledger.mark_synced(round_.id, round_.epoch, round_.revision)
    if update is Update.APPLIED:
        log.info("round updated", round=round_.id, revision=round_.revision, status=round_.status, units=round_.total)
    return Sync.DONE


async def _is_of_another(round_: Round, gate: OpeningGate, ledger: OpeningLedger) -> bool:
    """Whether the gate's round belongs to another sale. The gate has it open although the ledger has not noted that, so
    it comes from a later state of the ledger, in which another sale had this id. No one knows any more whose orders
    these are."""
    view = await gate.inspect(round_.ref)
    if view is None or view.status is GateStatus.PREPARING:
        return False
    sale = await ledger.sale(round_.sale_id, round_.id)
    return sale is not None and sale.round.opened_ms is None and sale.round.epoch == round_.epoch


def _lost(round_: Round, found: Found | Update) -> Sync:
    log.error(
        "the gate has lost a round: it refuses with not_ready",
        round=round_.id,
        epoch=round_.epoch,
        found=found,
    )
    return Sync.LOST
