"""One buyer's data, for an operator whom the person has asked for it: exported as a whole, or erased.

Orders stay for the books, but the buyer's name in them becomes a pseudonym that cannot be guessed and does not lead
back to the person. Nothing is erased while anything of the buyer's may still move: the gate counts buyers by their
names, a refund has to find its order, and half an erasure would help neither.
"""

import secrets
from dataclasses import dataclass

import structlog

from seckill.domain.admission import Holding
from seckill.domain.sale import Round
from seckill.ports.buyer_data import BuyerDataLedger, BuyerRows, Erasure, Hindrance, HindranceKind
from seckill.ports.gate import TrackingGate

log = structlog.get_logger()

PSEUDONYM = "erased-"
ROUNDS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class BuyerFile:
    """Everything that is held about a buyer."""

    rows: BuyerRows
    in_gate: list[tuple[Round, Holding]]  # live orders, written or not


class BuyerData:
    def __init__(self, ledger: BuyerDataLedger, gate: TrackingGate) -> None:
        self._ledger = ledger
        self._gate = gate

    async def export(self, user: str) -> BuyerFile:
        """Reads the gate before the ledger: an order that has left the gate by then is in the ledger."""
        held, _ = await self._in_gate(user)
        return BuyerFile(await self._ledger.rows_of(user), held)

    async def erase(self, user: str) -> Erasure | list[Hindrance]:
        held, unknown = await self._in_gate(user)
        if held or unknown:
            written = {row["id"] for row in (await self._ledger.rows_of(user)).orders}
            queued = [each for each in held if int(each[1].number) not in written]
            hindrances = [Hindrance(HindranceKind.QUEUED, round_.sale_id, int(one.number)) for round_, one in queued]
            hindrances += [Hindrance(HindranceKind.ROUND, round_.sale_id) for round_ in unknown]
            if hindrances:
                return hindrances
        # Random, and kept nowhere beside the name.
        done = await self._ledger.erase(user, f"{PSEUDONYM}{secrets.token_hex(16)}")
        if isinstance(done, Erasure):
            log.info("a buyer was erased", orders=done.orders, entries=done.entries)
        return done

    async def _in_gate(self, user: str) -> tuple[list[tuple[Round, Holding]], list[Round]]:
        """Returns the buyer's holdings, and the rounds whose records the gate may have lost."""
        rounds = await self._ledger.rounds_in_gate()
        held: list[tuple[Round, Holding]] = []
        unknown: list[Round] = []
        for start in range(0, len(rounds), ROUNDS_AT_ONCE):
            portion = rounds[start : start + ROUNDS_AT_ONCE]
            for round_, mine in zip(
                portion, await self._gate.holdings([each.ref for each in portion], user), strict=True
            ):
                if mine is None:
                    unknown.append(round_)
                else:
                    held += [(round_, one) for one in mine]
        return held, unknown
