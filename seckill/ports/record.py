"""The record: who has changed what, when and why. It only ever grows.

Who acts is set once, where a request is let in, and travels with it: so no method between there and the ledger has to
pass it on, and none can forget to. What nobody in particular does (a worker, a keeper, a buyer) is not on it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Actor:
    name: str
    request_id: str = ""
    why: str | None = None  # where the request says so and the change itself has no place for it


_acting: ContextVar[Actor | None] = ContextVar("acting", default=None)


def acting() -> Actor | None:
    return _acting.get()


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    before = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(before)


Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEntry:
    id: int
    at_ms: int
    who: str
    what: str  # `sale.changed`: its first word says what `subject` is the number or the name of
    subject: str
    sale_id: int | None
    before: Facts | None
    after: Facts | None
    why: str | None
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    who: str | None = None
    what: str | None = None  # `sale.*`: all that begin with it
    sale_id: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class RecordBook(Protocol):
    """There is no way to change an entry, nor to remove one."""

    async def entries(self, wanted: RecordFilter, before: int | None, count: int) -> Sequence[RecordEntry]:
        """Newest first, those that came before that entry."""

    async def note(self, what: str, subject: str, *, after: Facts | None = None) -> None:
        """For what is not changed in one transaction of the ledger."""
