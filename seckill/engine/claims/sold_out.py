"""Sold-out flags: while one stands, this node refuses claims for its round without asking the gate.

A flag is raised when the gate has answered that nothing is left. It knows the round's winners: a winner who repeats is
sent to the gate and finds their order. A flag holds for one version of the round, and is withdrawn as soon as units
come back.

In a round with items, each item that is sold out has its own flag, and the others go on selling. Units that come back
to another item end the flag too, but it is raised again at once, because the winners of an item that got nothing back
have not changed.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundRef
from seckill.engine.claims.lasting_states import LastingStates
from seckill.engine.claims.winner_filter import WinnerFilter
from seckill.errors import GateError
from seckill.ports.gate import GateReply, GateView, Pulse, WinnersGate
from seckill.ports.transport import NewsTransport

log = structlog.get_logger()


# A round, or a round and one of its items.
FlagKey: TypeAlias = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class SoldOutFlag:
    """Holds for one version of the round: as long as nothing came back, no buyer outside `winners` can have an order,
    or an order of that item."""

    version: int
    winners: WinnerFilter
    sold_out_ms: int | None  # when the last unit of the round was sold, by the gate's clock; None: not known


@dataclass(frozen=True, slots=True)
class _Winners:
    """The buyers with an order when an item was sold out, with the epoch, and the units that had ever been on sale by
    then."""

    epoch: int
    supplied: int
    filter: WinnerFilter


class SoldOutFlags:
    def __init__(self, gate: WinnersGate) -> None:
        self._gate = gate
        # Public so that each claim can look up its flag without a call.
        self.standing: dict[FlagKey, SoldOutFlag] = {}
        self._winners: dict[tuple[int, int], _Winners] = {}  # by round and item
        self._raising: dict[int, asyncio.Task[None]] = {}
        self._announced: dict[int, int] = {}  # round → the newest version that was announced
        self._lasting = LastingStates(_tell)

    def consider(self, ref: RoundRef, reply: GateReply) -> None:
        """Starts raising a flag if this answer of the gate says that nothing is left."""
        if (reply.available != 0 and not reply.gone) or ref.id in self._raising:
            return
        wanted: Iterable[FlagKey] = [(ref.id, item) for item in reply.gone] or [ref.id]
        flags = [self.standing.get(key) for key in wanted]
        are_standing = all(flag is not None and flag.version == reply.version for flag in flags)
        if self._is_over(ref.id, reply.version) or are_standing:
            return
        if any(answer.outcome is Outcome.SOLD_OUT for answer in reply.answers):
            self._raising[ref.id] = asyncio.create_task(self._raise(ref, reply.version))

    async def _raise(self, ref: RoundRef, version: int) -> None:
        """Raises the flags. While the version stands, no new buyer can win, so the winners found now are complete."""
        try:
            view = await self._gate.inspect(ref)
            if view is None or not view.whole or view.version != version:
                return
            if not view.items:
                gone: Mapping[FlagKey, WinnerFilter] = {} if view.available else {ref.id: await self._read(ref, view)}
            else:
                gone = await self._of_items(ref, view)
            if self._is_over(ref.id, version):  # while the winners were being read
                return
            for key, winners in gone.items():
                self.standing[key] = SoldOutFlag(version, winners, view.sold_out_ms if key == ref.id else None)
                if key == ref.id:
                    self._lasting.change(ref.id, on=True)
        except GateError as error:
            log.warning("no sold-out flag, the gate keeps answering", round=ref.id, reason=str(error))
        finally:
            del self._raising[ref.id]

    async def _read(self, ref: RoundRef, view: GateView) -> WinnerFilter:
        winners = WinnerFilter(view.buyers)
        async for portion in self._gate.buyers(ref):
            for user in portion:
                winners.add(user)
        return winners

    async def _of_items(self, ref: RoundRef, view: GateView) -> dict[FlagKey, WinnerFilter]:
        """Finds the winners of all items that are sold out together, so that the buyers are read once."""
        gone = {(ref.id, item): stock.supplied for item, stock in view.items.items() if stock.available == 0}
        known = {
            key: winners
            for key, supplied in gone.items()
            if (winners := self._winners.get(key)) and (winners.epoch, winners.supplied) == (view.epoch, supplied)
        }
        if len(known) < len(gone):
            read = await self._read(ref, view)
            known = {key: _Winners(view.epoch, supplied, read) for key, supplied in gone.items()}
            self._winners |= known
        return {key: winners.filter for key, winners in known.items()}

    async def listen(self, transport: NewsTransport) -> None:
        """Withdraws flags as soon as it is announced that units came back."""
        async for round_id, version in transport.version_changes():
            self.hear(round_id, version)

    def hear(self, round_id: int, version: int) -> None:
        """Takes an announcement. A late or repeated one is about a version that is known to be over, and changes
        nothing."""
        self._announced[round_id] = max(version, self._announced.get(round_id, 0))
        for key, flag in self._of_round(round_id):
            if self._is_over(round_id, flag.version):
                self._withdraw(key)

    def keep(self, pulses: dict[int, Pulse]) -> None:
        """Withdraws flags whose version is over, even if that was not announced, and forgets rounds without a pulse.

        While a version stands, units only go: if there are some again, the gate has gone back to an earlier time."""
        for key, flag in list(self.standing.items()):
            pulse = pulses.get(_round_of(key))
            if pulse is None or pulse.version != flag.version or _left(pulse, key) > 0:
                self._withdraw(key)
        for of_item in [of_item for of_item in self._winners if of_item[0] not in pulses]:
            del self._winners[of_item]
        self._lasting.keep(pulses)
        for round_id in self._announced.keys() - pulses.keys() - self._raising.keys():
            del self._announced[round_id]

    def is_raised(self, round_id: int) -> bool:
        return round_id in self.standing

    def _is_over(self, round_id: int, version: int) -> bool:
        return version < self._announced.get(round_id, 0)

    def _of_round(self, round_id: int) -> list[tuple[FlagKey, SoldOutFlag]]:
        return [(key, flag) for key, flag in self.standing.items() if _round_of(key) == round_id]

    def _withdraw(self, key: FlagKey) -> None:
        del self.standing[key]
        if isinstance(key, int):
            self._lasting.change(key, on=False)


def _round_of(key: FlagKey) -> int:
    return key if isinstance(key, int) else key[0]


def _left(pulse: Pulse, key: FlagKey) -> int:
    return pulse.available if isinstance(key, int) else pulse.items.get(key[1], 0)


def _tell(round_id: int, sold_out: bool) -> None:
    if sold_out:
        log.info("sold out: most claims are refused here, without the gate", round=round_id)
    else:
        log.info("no longer sold out", round=round_id)
