"""The alarms that were raised, kept in the ledger: all processes see the same, and they outlive the processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedAlarm:
    """`key` is the same for the same trouble, whichever process raises the alarm."""

    key: str
    what: str
    facts: Mapping[str, Any]
    lasting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAlarm:
    id: int
    what: str
    facts: Mapping[str, Any]
    sale_id: int | None
    raised_ms: int
    told_ms: int  # the last time
    times: int
    lasting: bool
    resolved_ms: int | None
    is_on: bool  # it lasts, and a process still confirms it


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmFilter:
    """Which alarms are wanted; None: all."""

    sale_id: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    on: bool = False  # only those that last now


class AlarmBook(Protocol):
    async def raised(self, alarm: RaisedAlarm) -> None:
        """Notes an alarm. The same trouble again within a while counts as the same alarm, told once more."""

    async def renew(self, keys: Sequence[str]) -> None:
        """Confirms that these alarms last."""

    async def resolved(self, key: str) -> None: ...

    async def alarms(self, wanted: AlarmFilter, count: int) -> Sequence[KeptAlarm]:
        """Newest first."""

    async def prune_alarms(self, kept_ms: int, count: int) -> int:
        """Deletes alarms that were not told for that long. Returns how many."""
