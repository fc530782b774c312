"""Counts how many of a sale's orders buyers let lapse, that is cancelled or did not pay in time. Too many raise an
alarm, once for each round: a buyer may be taking units to keep others from buying."""

from collections.abc import Collection

from seckill.domain.sale import Round
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.ports.ledger import Tally


class Lapses:
    """An alarm is raised when the lapsed `share` is reached (0: never) and there are at least this many `orders`, since
    a share of fewer means nothing."""

    def __init__(self, alarm: Alarm, *, share: float, orders: int) -> None:
        self._alarm = alarm
        self._share = share
        self._orders = orders
        self._told: dict[int, str] = {}  # rounds, and their sales

    async def forget_others(self, rounds: Collection[Round]) -> None:
        for round_id in self._told.keys() - {round_.id for round_ in rounds}:
            facts = {"sale": self._told.pop(round_id), "round": round_id}
            await self._alarm.resolve(
                "the round whose orders were let lapse is over", facts, ends=AlarmCause.ORDERS_LAPSE
            )

    async def consider(self, sale_id: str, round_: Round, tally: Tally) -> bool:
        """Returns whether it has raised an alarm."""
        share = lapsed_share(tally)
        if not self._share or share < self._share or tally.orders < self._orders or round_.id in self._told:
            return False
        self._told[round_.id] = sale_id
        facts = {"sale": sale_id, "round": round_.id, "orders": tally.orders, "lapsed": tally.lapsed}
        await self._alarm.raise_(AlarmCause.ORDERS_LAPSE, facts, lasting=True)
        return True


def lapsed_share(tally: Tally) -> float:
    return tally.lapsed / tally.orders if tally.orders else 0.0
