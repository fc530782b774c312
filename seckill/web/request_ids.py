"""A name for each request: in its answer and in whatever is logged about it, so that one can be found by the other.

A proxy in front may have given it one already. It is kept if it is short and plain: it goes into logs and headers.
"""

import itertools
import re
import secrets
from collections.abc import Iterable

HEADER = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_own = itertools.count(1)
# Every process has its own prefix, so that no two give the same name.
_beginning = secrets.token_hex(5).encode()


def request_id(given: bytes | None = None) -> bytes:
    if given is not None and _SANE.fullmatch(given):
        return given
    return b"%b-%x" % (_beginning, next(_own))


def request_id_in(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return request_id(next((value for name, value in headers if name == HEADER), None))
