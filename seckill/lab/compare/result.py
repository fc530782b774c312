"""The result of a strategy, and the flaws that it shows."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from seckill.lab.compare.crowd import CrowdTally
from seckill.lab.compare.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Units and orders after a run. All but the first three should be 0."""

    offered: int
    accepted: int
    persisted: int
    oversold: int
    undersold: int
    duplicates: int  # orders above the limit of their buyer
    lost: int  # accepted and not written, without a reason of their own
    failed: int  # presses that got an error instead of an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    accepted_per_s: float
    persisted_per_s: float
    p50_ms: float
    p99_ms: float
    drain_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The second run, in which a process was killed in the middle of an order and started again."""

    killed: str
    accepted_before: int
    persisted_before: int
    count: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyOutcome:
    strategy: str
    group: str
    summary: str
    not_run: str = ""  # the reason; empty when it was run
    count: Count | None = None
    speed: Speed | None = None
    crash: Crash | None = None

    @classmethod
    def of(
        cls,
        kind: type[Strategy],
        *,
        not_run: str = "",
        count: Count | None = None,
        speed: Speed | None = None,
        crash: Crash | None = None,
    ) -> Self:
        return cls(
            strategy=kind.name,
            group=kind.group,
            summary=kind.summary,
            not_run=not_run,
            count=count,
            speed=speed,
            crash=crash,
        )

    @property
    def flaws(self) -> list[str]:
        """Describes the flaws, the worst first; empty if none was seen."""
        if self.count is None:
            return []
        calm = self.count
        found = [
            f"{number} {word}"
            for number, word in (
                (calm.oversold, "oversold"),
                (calm.lost, "lost"),
                (calm.undersold, "left unsold"),
                (calm.duplicates, "sold twice to one person"),
            )
            if number
        ]
        if self.crash is not None and self.crash.count.lost:
            found.append(f"{self.crash.count.lost} lost at a kill")
        elif self.crash is not None and self.crash.count.undersold and not calm.undersold:
            found.append(f"{self.crash.count.undersold} left unsold at a kill")
        return found

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "flaws": self.flaws}


def count(
    tally: CrowdTally,
    persisted: Sequence[tuple[int, int]],
    fallen: Collection[int],
    *,
    offered: int,
    stock: int,
    limit_per_buyer: int,
) -> Count:
    there = {order for order, _ in persisted}
    per_buyer = Counter(buyer for _, buyer in persisted)
    return Count(
        offered=offered,
        accepted=len(tally.accepted),
        persisted=len(persisted),
        oversold=max(0, len(persisted) - stock),
        undersold=max(0, stock - len(persisted)),
        duplicates=sum(max(0, orders - limit_per_buyer) for orders in per_buyer.values()),
        lost=len(set(tally.accepted) - there - set(fallen)),
        failed=len(tally.failed),
    )


def speed(tally: CrowdTally, persisted: int, last_written_s: float) -> Speed:
    waits_ms = sorted(tally.waits_ms)
    selling_s = tally.last_accepted_s - tally.began_s
    writing_s = last_written_s - tally.began_s
    return Speed(
        accepted_per_s=_rate(len(tally.accepted), selling_s),
        persisted_per_s=_rate(persisted, writing_s),
        p50_ms=round(_share(waits_ms, 0.50), 2),
        p99_ms=round(_share(waits_ms, 0.99), 2),
        drain_s=round(max(0.0, last_written_s - tally.last_answer_s), 3),
    )


def _rate(number: int, took_s: float) -> float:
    return round(number / took_s, 1) if number and took_s > 0 else 0.0


def _share(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
