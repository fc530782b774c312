"""The progress of current sales: what every process reports, what the ledger has, and what waits in between."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seckill.domain.sale import Sale
from seckill.engine.sale_cache import SaleCache
from seckill.ports.board import Board, NodeReport, Seen
from seckill.ports.gate import Pulse
from seckill.ports.ledger import CountLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRound:
    sale: Sale
    pulse: Pulse | None  # None: the gate does not have it
    written: int  # units
    refused: Mapping[str, int]  # claims, by outcome
    backlog: int
    lag_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReading:
    now_ms: int  # by the board's clock
    seen: Sequence[Seen]
    rounds: Sequence[LiveRound]


class LiveFigures:
    def __init__(self, board: Board, ledger: CountLedger, sale_cache: SaleCache) -> None:
        self._board = board
        self._ledger = ledger
        self._sale_cache = sale_cache

    async def read(self) -> LiveReading:
        now_ms, seen = await self._board.reports()
        return LiveReading(now_ms=now_ms, seen=seen, rounds=await self._rounds(seen))

    async def _rounds(self, seen: Sequence[Seen]) -> list[LiveRound]:
        rounds = self._sale_cache.watched()
        if not rounds:
            return []
        refused = refused_by_round(one.report for one in seen)
        # Read before the gate's pulse, so that never more orders seem written than accepted.
        by_round = await self._ledger.counted([round_.id for round_ in rounds])
        waiting = await self._board.waiting({lane for round_ in rounds for lane in round_.every_lane})
        now_ms = self._sale_cache.now_ms()
        found = []
        for round_ in rounds:
            sale = self._sale_cache.sale_of_round(round_.id)
            lanes = [waiting[lane] for lane in round_.every_lane]
            oldest_ms = min((lane.oldest_ms for lane in lanes if lane.oldest_ms is not None), default=None)
            if sale is not None:
                found.append(
                    LiveRound(
                        sale=sale,
                        pulse=self._sale_cache.pulse(round_.id),
                        written=by_round[round_.id].written,
                        refused=refused.get(round_.id, {}),
                        backlog=sum(lane.entries for lane in lanes),
                        lag_ms=0 if oldest_ms is None else max(0, now_ms - oldest_ms),
                    )
                )
        return found


def refused_by_round(reports: Iterable[NodeReport]) -> dict[int, Counter[str]]:
    """Adds up the refused claims of all these processes, by round and outcome."""
    found: dict[int, Counter[str]] = {}
    for report in reports:
        for round_id, counted in report.refused.items():
            found.setdefault(int(round_id), Counter()).update(counted)
    return found
