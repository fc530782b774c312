"""Recognises plain requests: those that every parser reads alike.

They have one space where one is usual, no spaces around values, and only visible ASCII. The parser judges all other
requests. `native/kernel.c` does the same where it is compiled.
"""

import re

from seckill.native.kernel_choice import KERNEL
from seckill.web.requests.prefer_header import HEADER as PREFER

# Longer requests go to the parser, so no limit can be exceeded here.
PLAIN_BYTES_MAX = 8 * 1024
PLAIN_HEADERS_MAX = 64
_PLAIN = re.compile(
    rb"POST /v1/sales/([0-9A-Za-z]{1,32})/(orders|entries) HTTP/1\.1"
    rb"((?:\r\n[A-Za-z0-9_-]++: [!-~][ -~]*+(?<! ))++)\r\n\r\n"
)
# Headers that change how a request or its connection is read. A client that prefers to wait is among them, because that
# needs a task.
UNUSUAL = (b"expect", PREFER, b"proxy-connection", b"trailer", b"transfer-encoding", b"upgrade")
# A browser sends twenty headers. Those without a meaning here are not parsed, so its request takes 8 µs instead of 11.
NOTABLE = (
    *(b"authorization", b"idempotency-key", b"x-request-id", b"host", b"content-length", b"connection"),
    b"seckill-pass",
)
# Read only where pages of other origins may claim; elsewhere it has no meaning.
ORIGIN = b"origin"
_LENGTHS = {b"%d" % length: length for length in range(1024)}

# The sale's id, what is wanted of it, the notable headers and the body.
Plain = tuple[bytes, bytes, dict[bytes, bytes], bytes]


class PlainReader:
    def __init__(self, notable: tuple[bytes, ...], unusual: tuple[bytes, ...]) -> None:
        """Takes names of headers in lower case: those to return, and those that no plain request has."""
        self._notable = re.compile(rb"\n(%b): ([^\r]+)" % b"|".join((*notable, *unusual)), re.IGNORECASE)
        self._unusual = frozenset(unusual)

    def read(self, data: bytes) -> Plain | None:
        """Returns the claim or join, if `data` contains exactly one. None: the parser has to read it."""
        if len(data) > PLAIN_BYTES_MAX:
            return None
        found = _PLAIN.match(data)
        if found is None:
            return None
        sale_id, what, lines = found.groups()
        fields = self._notable.findall(lines)
        headers = {name.lower(): value for name, value in fields}
        # The parser judges repeated headers and other special cases.
        if len(headers) < len(fields) or lines.count(b"\n") > PLAIN_HEADERS_MAX:
            return None
        if not self._unusual.isdisjoint(headers):
            return None
        body = data[found.end() :]
        if _LENGTHS.get(headers.get(b"content-length", b"0")) != len(body) or b"host" not in headers:
            return None
        if b"connection" in headers and headers[b"connection"].lower() != b"keep-alive":
            return None
        return sale_id, what, headers, body


_Reader: type[PlainReader] = PlainReader if KERNEL is None else KERNEL.PlainReader
PLAIN = _Reader(NOTABLE, UNUSUAL)
PLAIN_WITH_ORIGIN = _Reader((*NOTABLE, ORIGIN), UNUSUAL)
