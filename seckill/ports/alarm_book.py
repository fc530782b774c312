"""Alarms that were raised, as the ledger keeps them: the same for every process, and after all of them have gone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedAlarm:
    """`key`: the same for the same trouble, whichever process tells of it."""

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
    is_on: bool  # it lasts, and somebody still says so


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmFilter:
    """Which alarms; None: all."""

    sale_id: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    on: bool = False  # only those that last now


class AlarmBook(Protocol):
    async def raised(self, alarm: RaisedAlarm) -> None:
        """The same trouble again within a while is told of once more, and is no other alarm."""

    async def renew(self, keys: Sequence[str]) -> None:
        """These last."""

    async def resolved(self, key: str) -> None: ...

    async def alarms(self, wanted: AlarmFilter, count: int) -> Sequence[KeptAlarm]:
        """Newest first."""

    async def prune_alarms(self, kept_ms: int, count: int) -> int:
        """Those that nobody has told of for so long. Returns how many went."""
