"""Decides which failpoints a process is armed with in each of its lives. The same seed arms the same ones.

Each life has one point at which the process is killed, a different one each time, and all points that only make a call
fail, hang or lose its answer.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class FaultWindow:
    """`needs`: what a run must have for the point to be reachable: `broker`, or `empty` (a gate that comes back
    empty)."""

    role: str  # of the process
    point: str
    action: str
    chance: float
    needs: str = ""

    @property
    def name(self) -> str:
        """The name as the process announces it."""
        return f"{self.point}: {self.action.partition('@')[0]}"

    @property
    def kills(self) -> bool:
        return self.action == "kill"

    def likelier(self, times: float) -> "FaultWindow":
        return replace(self, chance=min(1.0, self.chance * times))

    def __str__(self) -> str:
        return f"{self.point}={self.action}:{self.chance:g}"


# The chances suit about fifty claims a second: a point is hit within seconds, but not at once.
WINDOWS = (
    FaultWindow("api", "api.gate.admit.before", "kill", 0.005),
    FaultWindow("api", "api.gate.admit.after", "kill", 0.005),
    FaultWindow("api", "ledger.end.inside", "kill", 0.03),
    FaultWindow("api", "api.ledger.pay.after", "kill", 0.03),
    FaultWindow("api", "ledger.give.inside", "kill", 0.1),
    FaultWindow("api", "line.join.inside", "kill", 0.05),
    FaultWindow("api", "api.gate.admit.before", "stall@0.5", 0.01),
    FaultWindow("api", "api.gate.admit.after", "drop", 0.02),
    FaultWindow("api", "api.ledger.pay.after", "drop", 0.05),
    FaultWindow("api", "api.ledger.cancel.after", "drop", 0.1),
    FaultWindow("worker", "worker.transport.read.after", "kill", 0.02),
    FaultWindow("worker", "ledger.record.inside", "kill", 0.02),
    FaultWindow("worker", "worker.ledger.record.after", "kill", 0.02),
    FaultWindow("worker", "worker.transport.settle.after", "kill", 0.02),
    FaultWindow("worker", "relay.source.read.after", "kill", 0.05, "broker"),
    FaultWindow("worker", "relay.courier.post.after", "kill", 0.05, "broker"),
    FaultWindow("worker", "worker.ledger.record.after", "drop", 0.03),
    FaultWindow("worker", "worker.ledger.record.before", "raise", 0.03),
    FaultWindow("worker", "worker.transport.settle.before", "raise", 0.03),
    FaultWindow("worker", "worker.transport.settle.after", "drop", 0.03),
    FaultWindow("worker", "relay.courier.post.after", "drop", 0.05, "broker"),
    FaultWindow("keeper", "keeper.ledger.outbox.after", "kill", 0.05),
    FaultWindow("keeper", "keeper.gate.release.after", "kill", 0.05),
    FaultWindow("keeper", "keeper.ledger.expire_due.after", "kill", 0.1),
    FaultWindow("keeper", "keeper.ledger.call_next.after", "kill", 0.05),
    FaultWindow("keeper", "keeper.epoch.after", "kill", 0.2, "empty"),
    FaultWindow("keeper", "keeper.fill.before", "kill", 0.2, "empty"),
    FaultWindow("keeper", "keeper.gate.release.after", "drop", 0.05),
    FaultWindow("keeper", "keeper.ledger.expire_due.after", "drop", 0.1),
    FaultWindow("keeper", "keeper.ledger.outbox_done.before", "raise", 0.05),
    FaultWindow("keeper", "keeper.ledger.settle_called.after", "drop", 0.05),
)
# How long two processes of a role need for one window: to start, and to reach the point.
WINDOW_S = 15.0


class Spec(str):
    """A value of SECKILL_FAILPOINTS."""

    __slots__ = ()


def possible(has: Collection[str]) -> tuple[FaultWindow, ...]:
    return tuple(window for window in WINDOWS if not window.needs or window.needs in has)


def deck(windows: Sequence[FaultWindow], seed: int, role: str) -> list[FaultWindow]:
    """Returns the role's deadly windows, in the order in which its lives use them."""
    found = [window for window in windows if window.role == role and window.kills]
    random.Random(f"{seed} {role}").shuffle(found)  # noqa: S311 (chance, not a secret)
    return found


def armed(windows: Sequence[FaultWindow], seed: int, role: str, number: int, life: int) -> Spec:
    """Members take turns, so that they use up the deck as fast as they die."""
    deadly = deck(windows, seed, role)
    soft = [window for window in windows if window.role == role and not window.kills]
    this = deadly[(life * 2 + number) % len(deadly)] if deadly else None
    # A failpoint has one action at a time, so the one that kills is not armed with another action.
    chosen = [this, *(window for window in soft if window.point != this.point)] if this else soft
    return Spec(",".join(map(str, filter(None, chosen))))


def required(windows: Sequence[FaultWindow], seed: int, storm_s: float) -> list[str]:
    """Returns which windows a storm of that length must have hit: all of them if it is long enough, otherwise the first
    ones. Windows that need an empty gate can be reached only for a moment, so they are counted but not required."""
    found: list[str] = []
    asked = [window for window in windows if window.needs != "empty"]
    for role in dict.fromkeys(window.role for window in asked):
        reached = int(storm_s / WINDOW_S)
        found += [window.name for window in deck(windows, seed, role) if window.needs != "empty"][:reached]
        soft = [window for window in asked if window.role == role and not window.kills]
        found += [window.name for window in sorted(soft, key=lambda window: -window.chance)][:reached]
    return found
