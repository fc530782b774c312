"""How large and how slow a request may be, and the answers to those that are more."""

import json
from dataclasses import dataclass

from uvicorn.protocols.http.httptools_impl import STATUS_LINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    target_bytes_max: int = 8 * 1024
    headers_bytes_max: int = 16 * 1024
    headers_max: int = 100
    body_bytes_max: int = 64 * 1024
    head_within_s: float = 10.0
    body_within_s: float = 10.0
    # When a response waits for its client, the client must take this much of it in this time. It is half a kilobyte a
    # second: less than the worst phone connection, and too much for one who only wants to keep us waiting.
    unread_within_s: float = 30.0
    taken_bytes_min: int = 16 * 1024
    # How long an error answer waits for the client to stop sending: closing at once would reset the connection,
    # and the client would lose the answer.
    linger_s: float = 2.0
    # A few kilobytes can hold thousands of requests, each of which becomes an object that waits.
    pipelined_max: int = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    code: str
    detail: str

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
            (b"connection", b"close"),
        ]
        return b"".join([STATUS_LINE[self.status], *(b"%b: %b\r\n" % header for header in headers), b"\r\n", body])


BAD_REQUEST = Refusal(400, "bad_request", "This is not a valid HTTP/1.1 request.")
TIMEOUT = Refusal(408, "timeout", "The request took too long to arrive.")
TOO_LARGE = Refusal(413, "too_large", "The body of the request is too large.")
URI_TOO_LONG = Refusal(414, "uri_too_long", "The address of the request is too long.")
HEADERS_TOO_LARGE = Refusal(431, "headers_too_large", "The headers of the request are too many or too large.")
