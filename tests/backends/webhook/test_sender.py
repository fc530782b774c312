"""One delivery on the wire: where it goes, how long it takes at most, and what is kept of the answer."""

import asyncio
import datetime
import socket
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from seckill.backends.webhook import host_lookup
from seckill.backends.webhook.sender import REPLY_BYTES_MAX, RETRY_AFTER_S_MAX, HttpSender
from seckill.domain.webhook import DeliveryTrouble
from seckill.domain.webhook_target import Address, Target
from tests.patience import PATIENCE_S

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Resolver:
    """Answers with each of these in its turn, and with the last one from then on."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[Address]:
        self.asked.append(host)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ip_address(each) for each in found]


class Server:
    def __init__(self, answer: bytes = b"HTTP/1.1 204 No Content\r\n\r\n", then: Handler | None = None) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.port = 0
        self._then = then

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(self.answer)
            await writer.drain()
            if self._then is not None:
                await self._then(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def running(
        self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> AsyncIterator["Server"]:
        server = await asyncio.start_server(self.serve, host, port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        yield self
        server.close()

    def target(self, host: str = "shop.test", *, secure: bool = False, path: str = "/hook") -> Target:
        return Target(host=host, port=self.port, secure=secure, path=path, authority=f"{host}:{self.port}")


def sender(
    resolve: Resolver, *, private: bool = True, within_s: float = PATIENCE_S, tls: ssl.SSLContext | None = None
) -> HttpSender:
    return HttpSender(private=private, within_s=within_s, resolve=resolve, tls=tls)


HEADERS = (("webhook-id", "evt_1"),)


async def test_a_post_to_the_address_with_the_name_as_its_host() -> None:
    async with Server().running() as server:
        resolve = Resolver(["127.0.0.1"])
        sent = await sender(resolve).send(server.target(path="/hook?a=b"), HEADERS, b"{}")
    assert (sent.status, sent.trouble, sent.is_ok) == (204, None, True)
    assert server.heads[0].startswith("POST /hook?a=b HTTP/1.1\r\n")
    assert f"Host: shop.test:{server.port}\r\n" in server.heads[0]
    assert "webhook-id: evt_1\r\n" in server.heads[0]
    assert resolve.asked == ["shop.test"], "once"


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["::ffff:127.0.0.1"], ["1.1.1.1", "127.0.0.1"]]
)
async def test_a_name_that_stands_for_our_network_is_not_called(addresses: list[str]) -> None:
    async with Server().running() as server:
        sent = await sender(Resolver(addresses), private=False).send(server.target(), HEADERS, b"{}")
    assert (sent.status, sent.trouble, sent.took_ms) == (None, DeliveryTrouble.NOT_ALLOWED, None)
    assert server.heads == []


async def test_a_name_that_stands_for_something_else_a_moment_later_leads_nowhere_else() -> None:
    """DNS rebinding: the first answer is checked, a second would be where the attacker wants to go."""
    checked, other, resolve = Server(), Server(), Resolver(["127.0.0.1"], ["127.0.0.2"])
    async with checked.running(), other.running(host="127.0.0.2", port=checked.port):
        sent = await sender(resolve).send(checked.target(), HEADERS, b"{}")
        assert sent.is_ok
        assert (len(checked.heads), len(other.heads), len(resolve.asked)) == (1, 0, 1)
        await sender(resolve).send(checked.target(), HEADERS, b"{}")
        assert (len(checked.heads), len(other.heads)) == (1, 1), "the next delivery asks anew"


async def test_one_of_several_addresses_is_enough() -> None:
    async with Server().running() as server:
        sent = await sender(Resolver(["127.0.0.3", "127.0.0.1"])).send(server.target(), HEADERS, b"{}")
    assert sent.is_ok


async def test_no_redirect_is_followed() -> None:
    async with Server().running() as there:
        moved = f"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:{there.port}/\r\nContent-Length: 0\r\n\r\n"
        async with Server(moved.encode()).running() as here:
            sent = await sender(Resolver(["127.0.0.1"])).send(here.target(), HEADERS, b"{}")
    assert (sent.status, sent.is_ok) == (307, False)
    assert there.heads == []


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    written = 0

    async def on_and_on(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        while True:
            writer.write(b"x" * 1024)
            written += 1024
            await writer.drain()

    async with Server(b"HTTP/1.1 200 OK\r\n\r\n", on_and_on).running() as server:
        sent = await sender(Resolver(["127.0.0.1"])).send(server.target(), HEADERS, b"{}")
    assert sent.status == 200
    assert written < 100 * REPLY_BYTES_MAX


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000]
)
async def test_what_is_no_answer_says_no_more_than_that(answer: bytes) -> None:
    async with Server(answer).running() as server:
        sent = await sender(Resolver(["127.0.0.1"])).send(server.target(), HEADERS, b"{}")
    assert (sent.status, sent.trouble, sent.took_ms) == (None, DeliveryTrouble.NO_ANSWER, None)


async def test_a_closed_port_looks_the_same_as_a_silent_one() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with Server(b"", silent).running() as server:
        silence = await sender(Resolver(["127.0.0.1"]), within_s=0.2).send(server.target(), HEADERS, b"{}")
    closed = await sender(Resolver(["127.0.0.1"])).send(server.target(), HEADERS, b"{}")
    assert silence == closed


async def test_it_may_ask_for_patience() -> None:
    async with Server(b"HTTP/1.1 429 x\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n").running() as server:
        sent = await sender(Resolver(["127.0.0.1"])).send(server.target(), HEADERS, b"{}")
    assert (sent.status, sent.retry_after_s) == (429, 120.0)


@pytest.mark.parametrize("wait", ["9" * 400, "-1", "soon", "²", "1e3", "Fri, 31 Dec 2027 23:59:59 GMT"])
async def test_what_it_says_about_patience_breaks_nothing(wait: str) -> None:
    answer = f"HTTP/1.1 503 x\r\nRetry-After: {wait}\r\nContent-Length: 0\r\n\r\n"
    async with Server(answer.encode("latin-1")).running() as server:
        sent = await sender(Resolver(["127.0.0.1"])).send(server.target(), HEADERS, b"{}")
    assert (sent.status, sent.retry_after_s) == (503, RETRY_AFTER_S_MAX if wait.isascii() and wait.isdigit() else None)


async def test_a_name_that_nobody_answers_for_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many deliveries wait for it."""
    may_answer, asked = threading.Event(), Counter[str]()

    def look_up(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked[host] += 1
        if host == "silent.test":
            may_answer.wait()
            raise socket.gaierror("nobody knows")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with Server().running() as server:
        sends = HttpSender(private=True, within_s=PATIENCE_S)
        silent = server.target("silent.test")
        waiting = [asyncio.create_task(sends.send(silent, HEADERS, b"{}")) for _ in range(host_lookup.AT_ONCE_MAX + 10)]
        async with asyncio.timeout(PATIENCE_S):
            while not asked:
                await asyncio.sleep(0.01)
        try:
            sent = await sends.send(server.target("shop.test"), HEADERS, b"{}")
            assert not any(task.done() for task in waiting)
        finally:
            may_answer.set()
        answers = await asyncio.gather(*waiting)
    assert sent.is_ok
    assert {each.trouble for each in answers} == {DeliveryTrouble.NO_ANSWER}
    assert asked == {"silent.test": 1, "shop.test": 1}


async def test_tls_is_checked_against_the_name(tmp_path: Path) -> None:
    server_tls, client_tls = certificates(tmp_path, "shop.test")
    asked: list[str | None] = []
    server_tls.sni_callback = lambda _, name, __: asked.append(name)
    async with Server().running(server_tls) as server:
        here = Resolver(["127.0.0.1"])
        good = await sender(here, tls=client_tls).send(server.target(secure=True), HEADERS, b"{}")
        other = await sender(here, tls=client_tls).send(server.target("other.test", secure=True), HEADERS, b"{}")
        stranger = await sender(here).send(server.target(secure=True), HEADERS, b"{}")
    assert good.is_ok
    assert asked[:2] == ["shop.test", "other.test"]
    assert (other.trouble, stranger.trouble) == (DeliveryTrouble.NO_ANSWER, DeliveryTrouble.NO_ANSWER)
    assert len(server.heads) == 1


def certificates(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's, and that of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, private)
    return server, ssl.create_default_context(cafile=str(certificate))
