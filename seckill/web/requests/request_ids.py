"""An id for each request, in its answer and in everything that is logged about it, so that one leads to the other.

A proxy in front may have given the request an id already. It is kept if it is short and plain, because it goes into
logs and headers.
"""

import itertools
import os
import re
import secrets
from collections.abc import Iterable

import structlog

HEADER = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")


class _Names:
    """Every process, even a forked one, has its own prefix, so that no two give the same id."""

    def __init__(self) -> None:
        self.begin_anew()
        os.register_at_fork(after_in_child=self.begin_anew)

    def begin_anew(self) -> None:
        self._beginning = secrets.token_hex(5).encode()
        self._numbers = itertools.count(1)

    def next(self) -> bytes:
        return b"%b-%x" % (self._beginning, next(self._numbers))


_names = _Names()


def request_id(given: bytes | None = None) -> bytes:
    return given if given is not None and _SANE.fullmatch(given) else _names.next()


def current_request_id() -> str:
    """Returns the id of the request that this task answers, as the log has it."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def request_id_in(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return request_id(next((value for name, value in headers if name == HEADER), None))
