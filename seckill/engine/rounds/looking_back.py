"""How a sale stood at any time of which figures are still kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seckill.domain.sale import Sale
from seckill.engine.sale_cache import SaleCache
from seckill.ports.figures import FiguresLedger, RoundReading

POINTS_MAX = 2_000
# Without a wish for the step, a chart gets about this many points, as many as it has pixels.
POINTS_WANTED = 900
STEPS_S = (1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400)
BEFORE_MS = 60_000
AFTER_MS = 900_000


@dataclass(frozen=True, slots=True)
class SaleHistory:
    from_ms: int
    to_ms: int
    step_s: int
    readings: Sequence[RoundReading]
    before: Mapping[int, RoundReading]  # the last reading of each round before the first point


class TooManyPoints(Exception):
    """The requested span has more steps than one answer may contain."""


class LookingBack:
    def __init__(self, figures: FiguresLedger, sale_cache: SaleCache) -> None:
        self._figures = figures
        self._sale_cache = sale_cache

    async def read(
        self, sale: Sale, round_id: int | None, from_ms: int | None, to_ms: int | None, step_s: int | None
    ) -> SaleHistory:
        """Without a span, reads the whole of the sale's round. Without a step, chooses one that gives a sensible number
        of points."""
        round_, now_ms = sale.round, self._sale_cache.now_ms()
        begins_ms, over_ms = round_.opens_ms - BEFORE_MS, round_.ends_ms + 1000 * sale.pay_within_s + AFTER_MS
        if to_ms is None:
            to_ms = max((from_ms or begins_ms) + 1000, min(now_ms + 1000, over_ms))
        if from_ms is None:  # with a fine step, only as many points as one answer may contain
            from_ms = begins_ms if step_s is None else max(begins_ms, to_ms - 1000 * step_s * POINTS_MAX)
        span_s = max(1, -(-(to_ms - from_ms) // 1000))
        if step_s is None:
            step_s = next((step for step in STEPS_S if span_s <= step * POINTS_WANTED), STEPS_S[-1])
        if span_s > step_s * POINTS_MAX:
            raise TooManyPoints
        from_s, to_s = from_ms // 1000, -(-to_ms // 1000)
        found = await self._figures.read(sale.id, round_id, from_s, to_s, step_s, 2 * POINTS_MAX)
        before = await self._figures.newest(sorted({each.round_id for each in found}), from_s)
        return SaleHistory(from_ms, to_ms, step_s, found, before)
