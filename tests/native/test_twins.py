"""Whatever bytes come, the kernel gives what its twin in Python gives, and both what the general parser reads."""

import random
import string
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import httptools
import pytest

from seckill.domain import public_id
from seckill.web.buyers.token_shortcut import open_token
from seckill.web.claims.plain_request import NOTABLE, ORIGIN, UNUSUAL, Plain, PlainReader
from tests.web.buyers.tokens import signed

NAMES = (*NOTABLE, *UNUSUAL, ORIGIN)
ADDED = (
    *(b"X-Y: a b", b"Host: b", b"host: b", b"HOST: b", b"Hos: b", b"Hostt: b", b"Origin: https://shop.example"),
    *(b"Connection: keep-alive", b"connection: Keep-Alive", b"Connection: close", b"Connection: keep-alive, te"),
    *(b"Content-Length: 2", b"Content-Length: 02", b"Content-Length: 1000", b"Content-Length: 1023", b"Prefer: wait=1"),
    *(b"Transfer-Encoding: chunked", b"TE: trailers", b"Expect: 100-continue", b"Upgrade: h2c", b"Trailer: x"),
    *(
        b" folded",
        b"no colon",
        b"X:1",
        b"X : 1",
        b"X:  1",
        b"X: 1 ",
        b": 1",
        b"X: \t1",
        b"X\xe9: 1",
        b"X: \xe9",
        b"X: \x7f",
    ),
    *(b"Idempotency-Key: 7", b"X-Request-Id: abc", b"Seckill-Pass: p", b"Authorization: Basic x", b"X_Y: 1"),
)
ANY = [*range(256), *b"\r\n\r\n: \t,;", *b"HhoOsStT0123"]


def request_of(chance: random.Random) -> bytes:
    body = chance.choice([b"", b"{}", b'{"quantity":1}', b" " * 999, b" " * 1023, b" " * 1024])
    begin = b"POST /v1/sales/%b/%b HTTP/1.1" % (
        chance.choice([b"0", b"0123456789ABC", b"x" * 32] * 5 + [b"x" * 33, b"", b"a-b", b"%58"]),
        chance.choice([b"orders", b"entries"] * 10 + [b"entrie", b"orderss", b"orders/", b"pass", b""]),
    )
    lines = [begin, b"Host: shop.example", b"Authorization: Bearer a.b.c", b"Content-Length: %d" % len(body)]
    for _ in range(chance.choice([0, 0, 1, 1, 2, 3, 60, 61, 62])):
        lines.insert(chance.randint(1, len(lines)), chance.choice(ADDED[:1] if len(lines) > 8 else ADDED))
    whole = bytearray(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        at = chance.randrange(len(whole))
        match chance.randrange(4):
            case 0:
                whole[at] = chance.choice(ANY)
            case 1:
                del whole[at]
            case 2:
                whole.insert(at, chance.choice(ANY))
            case 3:
                del whole[at:]
        whole = whole or bytearray(b"P")
    return bytes(whole)


class General:
    """A request as the general parser understands it."""

    def __init__(self, data: bytes) -> None:
        self.url, self.body, self.headers, self.ended = b"", b"", list[tuple[bytes, bytes]](), 0
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.ended += 1


def compare(plain: Plain, data: bytes, names: tuple[bytes, ...]) -> None:
    sale_id, what, headers, body = plain
    general = General(data)
    assert (general.parser.get_method(), general.parser.get_http_version()) == (b"POST", "1.1")
    assert general.parser.should_keep_alive()
    assert not general.parser.should_upgrade()
    assert (general.ended, general.url, general.body) == (1, b"/v1/sales/%b/%b" % (sale_id, what), body)
    found = [(name, value) for name, value in general.headers if name in names]
    assert sorted(headers.items()) == sorted(found), "each once, and all of them"


@pytest.mark.parametrize("notable", [NOTABLE, (*NOTABLE, ORIGIN)], ids=["bare", "origin"])
def test_requests(kernel: ModuleType, notable: tuple[bytes, ...]) -> None:
    read, twin = kernel.PlainReader(notable, UNUSUAL).read, PlainReader(notable, UNUSUAL).read
    chance = random.Random(11)
    plain = 0
    for _ in range(20_000):
        data = request_of(chance)
        expected = twin(data)
        assert read(data) == expected, data
        if expected is not None:
            plain += 1
            compare(expected, data, notable)
    assert 2_000 < plain < 18_000, "both kinds were tried"


def test_every_beginning_and_every_byte_of_a_request(kernel: ModuleType) -> None:
    read, twin = kernel.PlainReader(NOTABLE, UNUSUAL).read, PlainReader(NOTABLE, UNUSUAL).read
    whole = b"POST /v1/sales/0A/orders HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
    assert read(whole) is not None
    for size in range(len(whole)):
        assert read(whole[:size]) is None
        assert twin(whole[:size]) is None
    for at in range(len(whole)):
        for byte in range(256):
            data = whole[:at] + bytes([byte]) + whole[at + 1 :]
            assert read(data) == twin(data), data
    longest = [
        b"POST /v1/sales/0A/orders HTTP/1.1\r\nHost: " + b"a" * more + b"\r\n\r\n" for more in (8146, 8147, 8148)
    ]
    assert [read(data) is None for data in longest] == [twin(data) is None for data in longest] == [False, False, True]


def test_every_byte_of_a_long_value_and_names_of_every_length(kernel: ModuleType) -> None:
    """Values are looked through several bytes at a time, and names are told apart by their lengths."""
    read, twin = kernel.PlainReader(NOTABLE, UNUSUAL).read, PlainReader(NOTABLE, UNUSUAL).read
    begin, end = b"POST /v1/sales/0A/orders HTTP/1.1\r\nHost: ", b"\r\nA: b\r\n\r\n"
    for size in (7, 8, 9, 17):
        for at in range(size):
            for byte in range(256):
                data = begin + b"a" * at + bytes([byte]) + b"a" * (size - at - 1) + end
                assert read(data) == twin(data), data
    for size in range(1, 300):
        data = begin + b"a\r\n" + b"n" * size + b": b" + end
        assert read(data) == twin(data) == (b"0A", b"orders", {b"host": b"a"}, b"")


def token_of(chance: random.Random) -> bytes:
    token = bytearray(
        signed({"sub": chance.choice(["ann", "张三", "x" * 90]), "exp": chance.randrange(10**9)}).encode()
    )
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        at = chance.randrange(len(token))
        match chance.randrange(5):
            case 0:
                token[at] = chance.choice([*range(256), *b"...==-_+/AQgw"])
            case 1:
                del token[at]
            case 2:
                token.insert(at, chance.choice(b".=-_+/AQgw\n\xe9"))
            case 3:
                token[-1] = chance.choice(string.printable.encode())  # bits that belong to no byte
            case 4:
                del token[at:]
        token = token or bytearray(b".")
    return bytes(token)


def test_tokens(kernel: ModuleType) -> None:
    chance = random.Random(12)
    opened = 0
    for _ in range(10_000):
        token = token_of(chance)
        expected = open_token(token)
        assert kernel.open_token(token) == expected, token
        opened += expected is not None
    assert 1_000 < opened < 9_500, "both kinds were tried"
    for token in (b"", b".", b"..", b"." * 44, b"." * 46, b"A" * 43, b"." + b"A" * 43, b"a.eA." + b"A" * 43):
        assert kernel.open_token(token) == open_token(token), token


def test_tokens_that_are_not_utf8(kernel: ModuleType) -> None:
    for payload in (b"_w", b"gIA", b"7aCA", b"8J-YgA", b"AA"):
        token = b"h." + payload + b"." + b"A" * 43
        assert kernel.open_token(token) == open_token(token), payload


def test_public_ids(kernel: ModuleType) -> None:
    ciphers = public_id.PublicIds(b"a key of a test", "order").encrypt
    chance = random.Random(13)
    edges = 0, 1, 31, 32, (1 << 32) - 1, 1 << 32, (1 << 63) - 1
    for numbers in (edges, *(tuple(chance.randrange(1 << 63) for _ in range(count)) for count in (0, 1, 2, 300))):
        for some in (ciphers, ciphers[:1], ()):
            assert kernel.encode_ids(numbers, some) == public_id.encode_ids(numbers, some)


def test_numbers_and_ciphers_that_are_none(kernel: ModuleType) -> None:
    def fails(_: bytes) -> bytes:
        raise KeyError

    no_numbers: list[Any] = [[], "12", ("12",), (1.0,), (None,)]
    for wrong in no_numbers:
        with pytest.raises(TypeError):
            kernel.encode_ids(wrong, ())
    for number in (-1, 1 << 64):
        with pytest.raises(OverflowError):
            kernel.encode_ids((1, number), ())
    for cipher in (lambda _: b"x" * 31, lambda _: b"x" * 48, lambda _: bytearray(32), lambda _: None):
        with pytest.raises(ValueError, match="as many blocks"):
            kernel.encode_ids((1, 2), (cipher,))
    with pytest.raises(KeyError):
        kernel.encode_ids((1, 2), (fails,))


def test_what_is_not_bytes_is_refused(kernel: ModuleType) -> None:
    calls: list[Callable[[Any], Any]] = [kernel.PlainReader(NOTABLE, UNUSUAL).read, kernel.open_token]
    for call in calls:
        for wrong in ("text", None, 7, bytearray(b"x"), memoryview(b"x")):
            with pytest.raises(TypeError):
                call(wrong)
    for names in (((), ()), (NOTABLE, (b"x",) * 40), (NOTABLE, (b"x" * 64,)), (("host",), ())):
        with pytest.raises(ValueError, match="names"):
            kernel.PlainReader(*names)


def test_nothing_is_left_behind(kernel: ModuleType) -> None:
    chance = random.Random(14)
    requests, tokens = [request_of(chance) for _ in range(300)], [token_of(chance) for _ in range(300)]
    ciphers = public_id.PublicIds(b"a key of a test", "order").encrypt

    def use() -> None:
        read = kernel.PlainReader(NOTABLE, UNUSUAL).read
        for data in requests:
            read(data)
        for token in tokens:
            kernel.open_token(token)
        kernel.encode_ids(tuple(range(1 << 40, (1 << 40) + 100)), ciphers)
        with pytest.raises(ValueError, match="as many blocks"):
            kernel.encode_ids((1, 2), (bytes.upper, lambda blocks: blocks[1:]))

    use()
    before = sys.getallocatedblocks()
    for _ in range(20):
        use()
    assert sys.getallocatedblocks() - before < 300, "less than one for each that was read"
