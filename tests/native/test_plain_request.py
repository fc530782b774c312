"""Which requests are plain, for the kernel and for its twin in Python."""

from collections.abc import Callable

import pytest

from seckill.web.claims.plain_request import NOTABLE, PLAIN_BYTES_MAX, UNUSUAL, Plain, PlainReader

Read = Callable[[bytes], Plain | None]


@pytest.fixture(params=["python", "kernel"])
def read(request: pytest.FixtureRequest) -> Read:
    kind: type[PlainReader] = (
        PlainReader if request.param == "python" else request.getfixturevalue("kernel").PlainReader
    )
    return kind(NOTABLE, UNUSUAL).read


PLAIN = b"POST /v1/sales/X/orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nContent-Length: 2\r\n\r\n{}"


def test_what_is_plain(read: Read) -> None:
    assert read(PLAIN) == (
        b"X",
        b"orders",
        {b"host": b"a", b"authorization": b"Bearer t", b"content-length": b"2"},
        b"{}",
    )
    assert read(PLAIN.replace(b"Host: a", b"Host: a\r\nConnection: Keep-Alive")) is not None
    assert read(PLAIN.replace(b"Content-Length: 2\r\n\r\n{}", b"X-Y: a b\r\n\r\n")) is not None
    # Firefox says this by HTTP/2, and the proxy passes it on: it is about the answer, and ours has no trailers.
    assert read(PLAIN.replace(b"Host: a", b"Host: a\r\nTe: trailers")) is not None


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        (b"POST", b"GET"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"/orders", b"/orders?a=b"),
        (b"/orders", b"/pass"),
        (b"/X/", b"/X/Y/"),
        (b"/X/", b"/%58/"),
        (b"Host: a\r\n", b""),
        (b"Host: a", b"Host: a\r\nhost: b"),
        (b"Host: a", b"Host: a\r\nAUTHORIZATION: Bearer u"),
        (b"Host: a", b"Host:a"),
        (b"Host: a", b"Host : a"),
        (b"Host: a", b"Host: a "),
        (b"Host: a", b"Host: a\r\n folded"),
        (b"Host: a", b"Host: a\nX: b"),
        (b"Host: a", b"Host: a\r\nX: \x00"),
        (b"Host: a", b"Host: a\r\nX: \xe9"),
        (b"Host: a", b"Host: a\r\nX:"),
        (b"Host: a", b"Host: a\r\nTransfer-Encoding: chunked"),
        (b"Host: a", b"Host: a\r\nTrailer: X-Checksum"),
        (b"Host: a", b"Host: a\r\nExpect: 100-continue"),
        (b"Host: a", b"Host: a\r\nConnection: close"),
        (b"Host: a", b"Host: a\r\nProxy-Connection: close"),
        (b"Host: a", b"Host: a\r\nConnection: upgrade\r\nUpgrade: websocket"),
        (b"Host: a", b"Host: a\r\n" + b"\r\n".join(b"X%d: a" % i for i in range(70))),
        (b"Host: a", b"Host: " + b"a" * PLAIN_BYTES_MAX),
        (b"Length: 2", b"Length: 1"),
        (b"Length: 2", b"Length: 3"),
        (b"Length: 2", b"Length: +2"),
        (b"Length: 2", b"Length: 02"),
        (b"{}", b"{}POST"),
        (b"{}", b""),
    ],
)
def test_what_is_for_the_parser_to_judge(read: Read, part: bytes, instead: bytes) -> None:
    assert PLAIN.count(part) == 1
    assert read(PLAIN.replace(part, instead)) is None
