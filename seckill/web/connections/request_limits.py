"""Limits how large and how slow a request may be, and answers those that exceed the limits."""

import json
from dataclasses import dataclass, replace

from seckill.web.connections.uvicorn_adapter import STATUS_LINE
from seckill.web.requests.request_ids import HEADER, request_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    target_bytes_max: int = 12 * 1024
    headers_bytes_max: int = 16 * 1024
    headers_max: int = 100
    body_bytes_max: int = 64 * 1024
    # A body including the framing of its chunks: enough for small chunks, but not for endless extensions or trailers.
    framed_body_bytes_max: int = 256 * 1024
    head_within_s: float = 10.0
    body_within_s: float = 10.0
    # When a response waits for its client, the client must take this much of it in this time. It is half a kilobyte a
    # second: less than the worst phone connection, and too much for a client that only wants to keep us waiting.
    unread_within_s: float = 30.0
    taken_bytes_min: int = 16 * 1024
    # How long an error answer waits for the client to stop sending: closing at once would reset the connection,
    # and the client would lose the answer.
    linger_s: float = 2.0
    # An upload must send this much in each `body_within_s`, and a smaller body all of it.
    upload_bytes_min: int = 16 * 1024
    upload_within_s: float = 900.0
    # A few kilobytes can hold thousands of requests, each of which becomes an object that waits.
    pipelined_max: int = 16

    def of_upload(self, bytes_max: int) -> "Limits":
        """Returns the same limits, but with another maximum for the body."""
        return replace(self, body_bytes_max=bytes_max, framed_body_bytes_max=2 * bytes_max)


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    code: str
    detail: str
    retry_after_s: int | None = None

    def answer(self, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        title = STATUS_LINE[self.status].split(b" ", 2)[2].strip().decode()
        problem = {
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        body = json.dumps(problem).encode()
        headers = [
            *default_headers,
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (HEADER, request_id()),
            (b"connection", b"close"),
        ]
        if self.retry_after_s is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after_s))
        return b"".join([STATUS_LINE[self.status], *(b"%b: %b\r\n" % header for header in headers), b"\r\n", body])


BAD_REQUEST = Refusal(400, "bad_request", "This is not a valid HTTP/1.1 request.")
TIMEOUT = Refusal(408, "timeout", "The request took too long to arrive.")
TOO_LARGE = Refusal(413, "too_large", "The body of the request is too large.")
URI_TOO_LONG = Refusal(414, "uri_too_long", "The address of the request is too long.")
HEADERS_TOO_LARGE = Refusal(431, "headers_too_large", "The headers of the request are too many or too large.")

_SINGLE = (b"host", b"content-length", b"transfer-encoding", b"authorization", b"idempotency-key")


def fault_in_head(
    limits: Limits,
    target: bytes,
    version: str,
    headers: list[tuple[bytes, bytes]],
    arrived_bytes: int,
    *,
    upgrades: bool,
) -> Refusal | None:
    """Returns what is wrong with a request line and its headers, whose names are in lower case."""
    if len(target) > limits.target_bytes_max:
        return URI_TOO_LONG
    if b"#" in target:  # a fragment is for the client alone: the address without it would have a second spelling
        return BAD_REQUEST
    # Adding up is rarely needed, because the headers are no larger than the bytes that have arrived.
    if len(headers) > limits.headers_max or (
        arrived_bytes > limits.headers_bytes_max
        and sum(len(name) + len(value) + len(b": \r\n") for name, value in headers) > limits.headers_bytes_max
    ):
        return HEADERS_TOO_LARGE
    values = dict(headers)
    if len(values) < len(headers):
        names = [name for name, _ in headers]
        if max(map(names.count, _SINGLE)) > 1:
            return BAD_REQUEST
    length = values.get(b"content-length")
    encoding = values.get(b"transfer-encoding")
    if (
        (version == "1.1" and b"host" not in values)
        or (version != "1.1" and (version != "1.0" or encoding is not None))
        # A request that states its end in two ways can smuggle another one inside.
        or (encoding is not None and (length is not None or encoding.lower() != b"chunked"))
        # The parser takes what follows an upgrade as the new protocol, not as a body.
        or (upgrades and (length is not None or encoding is not None))
    ):
        return BAD_REQUEST
    if length is not None and int(length) > limits.body_bytes_max:  # the parser accepts nothing but digits
        return TOO_LARGE
    return None
