"""The record: who has changed what, when and why. It only ever grows.

The acting operator is set once, where a request is let in, and travels with the request's context, so no method in
between has to pass it on or can forget to. Actions without an operator (of a worker, a keeper, a buyer) are not on the
record.
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
    why: str | None = None  # the reason in the request, if the change itself has no field for it


_acting: ContextVar[Actor | None] = ContextVar("acting", default=None)


def acting() -> Actor | None:
    return _acting.get()


@contextmanager
def acting_as(actor: Actor | None) -> Iterator[None]:
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
        """Returns the entries before that one, newest first."""

    async def note(self, what: str, subject: str, *, after: Facts | None = None) -> None:
        """For changes that are not made in one transaction of the ledger."""
