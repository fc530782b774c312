"""Sold-out flags: while one stands, this node refuses claims for its round without asking the gate.

A flag is raised when the gate has answered that nothing is left, and it knows the round's winners: a winner who repeats
is sent to the gate and finds their order. It holds for one version of the round, and goes as soon as units come back.
"""

import asyncio
from dataclasses import dataclass

import structlog

from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundRef
from seckill.engine.claims.lasting_states import LastingStates
from seckill.engine.claims.winner_filter import WinnerFilter
from seckill.errors import GateError
from seckill.ports.gate import GateReply, Pulse, WinnersGate
from seckill.ports.transport import NewsTransport

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SoldOutFlag:
    """True for one version of the round: as long as nothing came back, no buyer outside `winners` can have an order."""

    version: int
    winners: WinnerFilter


class SoldOutFlags:
    def __init__(self, gate: WinnersGate) -> None:
        self._gate = gate
        # By round. For others to read: each claim looks its flag up here, without a call.
        self.standing: dict[int, SoldOutFlag] = {}
        self._raising: dict[int, asyncio.Task[None]] = {}
        self._announced: dict[int, int] = {}  # round → the newest version that was announced
        self._lasting = LastingStates(_tell)

    def consider(self, ref: RoundRef, reply: GateReply) -> None:
        """Begins to raise a flag if this answer of the gate says that nothing is left."""
        if reply.available != 0 or ref.id in self._raising:
            return
        flag = self.standing.get(ref.id)
        if self._is_over(ref.id, reply.version) or (flag is not None and flag.version == reply.version):
            return
        if any(answer.outcome is Outcome.SOLD_OUT for answer in reply.answers):
            self._raising[ref.id] = asyncio.create_task(self._raise(ref, reply.version))

    async def _raise(self, ref: RoundRef, version: int) -> None:
        """While the version stands no new buyer can win, so the winners found now are all there are."""
        try:
            view = await self._gate.inspect(ref)
            if view is None or not view.whole or view.version != version or view.available != 0:
                return
            winners = WinnerFilter(view.buyers)
            async for portion in self._gate.buyers(ref):
                for user in portion:
                    winners.add(user)
            if self._is_over(ref.id, version):  # while the winners were being read
                return
            self.standing[ref.id] = SoldOutFlag(version, winners)
            self._lasting.change(ref.id, on=True)
        except GateError as error:
            log.warning("no sold-out flag, the gate keeps answering", round=ref.id, reason=str(error))
        finally:
            del self._raising[ref.id]

    async def listen(self, transport: NewsTransport) -> None:
        """Withdraws flags as soon as it is announced that units came back."""
        async for round_id, version in transport.version_changes():
            self.hear(round_id, version)

    def hear(self, round_id: int, version: int) -> None:
        """A late or repeated announcement is about a version that is known to be over, and changes nothing."""
        self._announced[round_id] = max(version, self._announced.get(round_id, 0))
        flag = self.standing.get(round_id)
        if flag is not None and self._is_over(round_id, flag.version):
            self._withdraw(round_id)

    def keep(self, pulses: dict[int, Pulse]) -> None:
        """Withdraws flags whose version is over, even if that was not announced, and forgets rounds without a pulse.

        While a version stands, units only go: if there are some again, the gate has gone back to an earlier time."""
        for round_id, flag in list(self.standing.items()):
            pulse = pulses.get(round_id)
            if pulse is None or pulse.version != flag.version or pulse.available > 0:
                self._withdraw(round_id)
        self._lasting.keep(pulses)
        for round_id in self._announced.keys() - pulses.keys() - self._raising.keys():
            del self._announced[round_id]

    def is_raised(self, round_id: int) -> bool:
        return round_id in self.standing

    def _is_over(self, round_id: int, version: int) -> bool:
        return version < self._announced.get(round_id, 0)

    def _withdraw(self, round_id: int) -> None:
        del self.standing[round_id]
        self._lasting.change(round_id, on=False)


def _tell(round_id: int, sold_out: bool) -> None:
    if sold_out:
        log.info("sold out: most claims are refused here, without the gate", round=round_id)
    else:
        log.info("no longer sold out", round=round_id)
