"""Slow, large and malformed requests, and clients that do not read (S20-S22, S32)."""

import time

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seckill.web.connections.guarded_protocol import GuardedProtocol
from seckill.web.connections.request_limits import Limits
from tests.web.connections.guarded import (
    LOOPS,
    SHORT,
    Guarded,
    is_quiet_and_empty,
    on_each_loop,
    running,
    without_deadlines,
)
from tests.web.connections.raw_client import eventually
from tests.web.connections.requests import CHUNKED, GET, HEAD, POST, REFUSED

server = pytest.fixture(scope="module", params=LOOPS)(on_each_loop)
nothing_stays = pytest.fixture(autouse=True)(is_quiet_and_empty)
unhurried = pytest.fixture(without_deadlines)


def test_the_limits_in_use() -> None:
    assert GuardedProtocol.limits == Limits(
        target_bytes_max=12 * 1024,
        headers_bytes_max=16384,
        headers_max=100,
        body_bytes_max=65536,
        framed_body_bytes_max=262144,
        head_within_s=10,
        body_within_s=10,
        unread_within_s=30,
        taken_bytes_min=16384,
    )


# Slow ones are cut.


def test_the_control_without_the_guard_a_slow_client_is_waited_for() -> None:
    """If this fails, uvicorn has learned it, and the tests below prove nothing about the guard."""
    with running("asyncio", HttpToolsProtocol) as server, server.connect() as client:
        client.send(HEAD)
        with pytest.raises(AssertionError, match="the server took it all"):
            client.drip(b"X-Slow: " + b"x" * 60)
        client.send(b"\r\n\r\n")
        assert client.response().status == 200


def test_slow_headers(server: Guarded) -> None:
    with server.connect() as client:
        client.send(HEAD)
        took_s = client.drip(b"X-Slow: " + b"x" * 1000)
        assert took_s > 0.5 * SHORT.head_within_s
        assert client.response().problem["code"] == "timeout"
        assert client.is_closed()
        assert server.is_serving()


def test_a_slow_second_request(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET)
        assert client.response().status == 200
        client.drip(HEAD + b"X-Slow: " + b"x" * 1000)
        assert client.response().status == 408


def test_a_slow_body(server: Guarded) -> None:
    with server.connect() as client:
        client.send(POST + b"Content-Length: 1000\r\n\r\n")
        took_s = client.drip(b"x" * 1000)
        assert took_s > 0.5 * SHORT.body_within_s
        assert client.response().problem["code"] == "timeout"
        assert client.is_closed()
        eventually(lambda: "/echo" in server.app.gone)  # the application does not wait for the rest


def test_the_application_cannot_answer_a_second_time(server: Guarded) -> None:
    with server.connect() as client:
        client.send(POST.replace(b"echo", b"hasty") + b"Content-Length: 9\r\n\r\nx")
        assert client.response().status == 408
        assert client.is_closed()


def test_a_slow_chunked_body(server: Guarded) -> None:
    with server.connect() as client:
        client.send(CHUNKED + b"3e8\r\n")
        client.drip(b"x" * 1000)
        assert client.response().status == 408


def test_a_slow_body_after_the_answer(server: Guarded) -> None:
    with server.connect() as client:
        client.send(POST.replace(b"echo", b"early") + b"Content-Length: 1000\r\n\r\n")
        assert client.response().status == 401
        client.drip(b"x" * 1000)
        assert client.is_closed()


def test_an_idle_connection_whose_answer_came_before_the_body(server: Guarded) -> None:
    with server.connect() as client:
        client.send(POST.replace(b"echo", b"early") + b"Content-Length: 3\r\n\r\n")
        assert client.response().status == 401
        client.send(b"abc")
        assert client.is_closed()


def test_connections_that_send_nothing(server: Guarded) -> None:
    clients = [server.connect() for _ in range(50)]
    assert server.is_serving()
    for client in clients:
        with client:
            assert client.is_closed()


@pytest.mark.parametrize("before", [b"", GET])
def test_line_ends_keep_no_connection_open(server: Guarded, before: bytes) -> None:
    with server.connect() as client:
        if before:
            client.send(before)
            assert client.response().status == 200
        client.drip(b"\r\n" * 1000)
        assert client.is_closed()


# Those that do not read are cut.


def test_a_client_that_never_reads_a_stream(server: Guarded) -> None:
    server.app.gone.clear()
    with server.connect() as client:
        began = time.monotonic()
        client.send(GET.replace(b"hello", b"flood"))
        eventually(lambda: server.connections == 1)
        eventually(lambda: server.connections == 0)
        assert time.monotonic() - began > SHORT.unread_within_s * 0.9
        eventually(lambda: server.app.gone == ["/flood"])
        assert server.is_serving()


def test_a_client_that_never_reads_the_last_page(server: Guarded) -> None:
    """Less than what pauses writing, so only the closing connection shows that the client does not read."""
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"page"))
        eventually(lambda: server.connections == 1)
        eventually(lambda: server.connections == 0)


def test_a_client_that_reads_a_little_now_and_then(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"flood"))
        eventually(lambda: server.connections == 1)
        eventually(
            lambda: client.sips(SHORT.taken_bytes_min // 4, SHORT.unread_within_s / 2) and server.connections == 0
        )


def test_a_client_that_never_reads_and_sends_on(server: Guarded) -> None:
    with server.connect() as client:
        assert client.sends_until_cut(GET)


# Large and malformed ones are refused.


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(("request_", "status", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_malformed_and_smuggled_requests_are_refused(server: Guarded, request_: bytes, status: int, code: str) -> None:
    with server.connect() as client:
        try:
            client.send(request_)
        except ConnectionError:
            pytest.fail("the connection was reset before the answer could be read")
        response = client.response()
        assert (response.status, response.problem["code"]) == (status, code)
        assert client.is_closed()


@pytest.mark.usefixtures("unhurried")
def test_the_answer_to_a_large_body_arrives_although_it_is_still_being_sent(server: Guarded) -> None:
    with server.connect() as client:
        client.send(POST + b"Content-Length: 3000000\r\n\r\n")
        for _ in range(300):
            client.send(b"x" * 10_000)  # would fail if the server had closed the connection
        assert client.response().problem["code"] == "too_large"


@pytest.mark.usefixtures("unhurried")
def test_who_sends_on_after_a_refusal_is_cut(server: Guarded) -> None:
    with server.connect() as client:
        client.send(b"nonsense\r\n\r\n")
        assert client.response().status == 400
        assert client.sends_until_cut(b"x" * 1000)


@pytest.mark.usefixtures("unhurried")
def test_a_good_request_before_a_bad_one_is_answered(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"slow") + b"nonsense\r\n\r\n" + b"x" * 1000)
        assert client.response().status == 200
        assert client.is_closed()


@pytest.mark.usefixtures("unhurried")
def test_requests_beyond_what_may_wait_are_not_taken(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET * 200)
        for _ in range(SHORT.pipelined_max + 1):
            assert client.response().status == 200
        assert client.is_closed()


@pytest.mark.usefixtures("unhurried")
def test_an_upgrade_behind_a_request_that_is_not_answered_yet_is_refused(server: Guarded) -> None:
    """The connection would change hands, and the handler that answers would never learn that it ended."""
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"slow") + HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert client.response().status == 200
        assert client.is_closed()
