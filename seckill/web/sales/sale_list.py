"""The list of sales as everyone sees it. Serialising each sale takes time, and every buyer asks again and again, so the
list is made a few times a second at most."""

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from seckill.web.responses import Tagged
from seckill.web.schemas import Sale, Sales, rfc3339

# Changes by time alone, such as a sale's beginning, may be shown this much later. Other changes show at once.
MADE_EVERY_MS = 100
# How many pages of past sales are kept that long.
KEPT_MAX = 16


def timeless(sale: Sale) -> Sale:
    return msgspec.structs.replace(sale, server_time="")


class SaleList:
    def __init__(self, sales: Sequence[Sale], older: str | None, at_ms: int) -> None:
        self._sales = list(sales)
        self._older = older
        self.at_ms = at_ms

    @property
    def many(self) -> int:
        return len(self._sales)

    @cached_property
    def answer(self) -> Tagged:
        """The tag ignores the server's time: an unchanged list is a 304 although time went on."""
        content = Sales(self._sales, rfc3339(self.at_ms), self._older)
        return Tagged.of(content, Sales([timeless(sale) for sale in self._sales], "", self._older))

    @cached_property
    def going(self) -> bytes:
        """Returns the sales that are not over, as the same bytes as long as they do not change."""
        return msgspec.json.encode([timeless(sale) for sale in self._sales if sale.state != "ended"])


class SaleLists:
    """Keeps lists made a moment ago, by the sale before which they end; None: the newest list."""

    def __init__(self) -> None:
        self._made: dict[str | None, tuple[int, SaleList]] = {}

    def of(self, before: str | None, news: int, now_ms: int, make: Callable[[], SaleList]) -> SaleList:
        """`news`: a number that changes whenever anything new was learnt."""
        known = self._made.get(before)
        if known is not None and known[0] == news and 0 <= now_ms - known[1].at_ms < MADE_EVERY_MS:
            return known[1]
        made = make()
        if len(self._made) >= KEPT_MAX:
            self._made.clear()
        self._made[before] = news, made
        return made
