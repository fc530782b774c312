"""Good requests are served as ever, and responses take the time they need."""

import gc
import json
import time

import pytest

from tests.web.connections.guarded import (
    KEEP_ALIVE_S,
    LONGER_S,
    LOOPS,
    SHORT,
    Guarded,
    ShortProtocol,
    is_quiet_and_empty,
    on_each_loop,
    without_deadlines,
)
from tests.web.connections.raw_client import eventually
from tests.web.connections.requests import CHUNKED, GET, HEAD, POST

server = pytest.fixture(scope="module", params=LOOPS)(on_each_loop)
nothing_stays = pytest.fixture(autouse=True)(is_quiet_and_empty)
unhurried = pytest.fixture(without_deadlines)


def test_keep_alive(server: Guarded) -> None:
    with server.connect() as client:
        for _ in range(3):
            began = time.monotonic()
            client.send(GET)
            assert client.response().status == 200
        assert client.is_closed()
        assert time.monotonic() - began > KEEP_ALIVE_S * 0.9


def test_a_connection_may_live_longer_than_any_deadline(server: Guarded) -> None:
    with server.connect() as client:
        end = time.monotonic() + LONGER_S
        while time.monotonic() < end:
            client.send(GET)
            assert client.response().status == 200


@pytest.mark.usefixtures("unhurried")
def test_pipelining(server: Guarded) -> None:
    with server.connect() as client:
        client.send(b"".join(GET.replace(b"hello", b"%d" % number) for number in range(4)))
        assert [b'"/%d"' % number in client.response().body for number in range(4)] == [True] * 4


@pytest.mark.usefixtures("unhurried")
def test_reading_goes_on_after_pipelined_requests(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"early") * 2)  # this application never asks for more
        assert [client.response().status, client.response().status] == [401, 401]
        client.send(GET)
        assert client.response().status == 200


@pytest.mark.usefixtures("unhurried")
def test_a_request_in_small_pieces(server: Guarded) -> None:
    with server.connect() as client:
        for byte in POST + b"Content-Length: 3\r\n\r\nabc":
            client.send(bytes([byte]))
        assert b'"body": 3' in client.response().body


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    "request_",
    [
        POST + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000,
        CHUNKED + b"9c4\r\n" + b"x" * 2500 + b"\r\n9c4\r\n" + b"x" * 2500 + b"\r\n0\r\n\r\n",
    ],
    ids=["length", "chunked"],
)
def test_the_largest_body(server: Guarded, request_: bytes) -> None:
    with server.connect() as client:
        client.send(request_)
        assert b'"body": 5000' in client.response().body


@pytest.mark.usefixtures("unhurried")
def test_the_largest_head(server: Guarded) -> None:
    with server.connect() as client:
        path = b"/" + b"x" * 999
        headers = b"".join(b"X-%02d: %s\r\n" % (number, b"y" * 90) for number in range(19))
        client.send(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n" + headers + b"\r\n")
        assert client.response().status == 200


@pytest.mark.usefixtures("unhurried")
def test_a_continue_is_sent_when_the_body_is_welcome(server: Guarded) -> None:
    with server.connect() as client:
        client.send(POST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert client.file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert client.file.readline() == b"\r\n"
        client.send(b"abc")
        assert client.response().status == 200


@pytest.mark.usefixtures("unhurried")
def test_http_1_0_without_host(server: Guarded) -> None:
    with server.connect() as client:
        client.send(b"GET /hello HTTP/1.0\r\n\r\n")
        assert client.response().status == 200
        assert client.is_closed()


@pytest.mark.usefixtures("unhurried")
def test_another_upgrade_is_answered_as_a_plain_request(server: Guarded) -> None:
    with server.connect() as client:
        client.send(HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n")
        assert client.response().status == 200


def test_what_follows_an_upgrade_that_is_not_done_is_the_next_request(server: Guarded) -> None:
    """The parser stops behind an upgrade, and what it left was dropped: its buyer would wait for ever."""
    ignored = HEAD.replace(b"hello", b"ignored") + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    with server.connect() as client:
        client.send(ignored + GET + ignored + GET)
        answers = [json.loads(client.response().body)["path"] for _ in range(4)]
        assert answers == ["/ignored", "/hello"] * 2
        client.send(ignored + HEAD)
        assert client.response().status == 200
        client.send(b"\r\n")
        assert client.response().status == 200


def test_what_follows_an_upgrade_that_is_done_is_for_the_new_protocol(server: Guarded) -> None:
    with server.connect() as client:
        client.send(HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + b"first words")
        assert client.file.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
        assert client.file.readline() == b"\r\n"
        assert client.file.read(11) == b"first words"


@pytest.mark.usefixtures("unhurried")
def test_trailers_do_not_reach_the_application(server: Guarded) -> None:
    with server.connect() as client:
        client.send(CHUNKED + b"3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\nX-Other: y\r\n\r\n")
        assert b'"headers": 2' in client.response().body


def test_a_long_poll_outlives_the_deadlines(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"slow"))
        assert client.response().status == 200


def test_a_stray_line_end_during_a_long_poll_does_not_cut_it(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"slow"))
        eventually(lambda: len(server.server.server_state.tasks) == 1)
        client.send(b"\r\n")
        assert client.response().status == 200


def test_an_event_stream_outlives_the_deadlines(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"events"))
        assert client.response().body == b"onetwo"


def test_a_websocket_outlives_the_deadlines(server: Guarded) -> None:
    with server.connect() as client:
        client.send(HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert client.file.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
        assert client.file.readline() == b"\r\n"
        client.socket.settimeout(LONGER_S)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)  # nothing comes, and the end of the connection neither
        client.send(b"still there?")
        assert client.socket.recv(100) == b"still there?"
    # Its timer would keep the first protocol of this connection for ever, because that one is not told of the end.
    eventually(lambda: gc.collect() >= 0 and not ShortProtocol.alive)


def test_half_a_request_behind_a_long_poll_is_not_cut(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"slow") + POST + b"Content-Length: 3\r\n\r\na")
        assert client.response().status == 200
        time.sleep(SHORT.body_within_s / 2)  # its own time begins when it is its turn
        client.send(b"bc")
        assert b'"body": 3' in client.response().body


def test_a_slow_reader_that_does_read_is_served(server: Guarded) -> None:
    with server.connect() as client:
        client.send(GET.replace(b"hello", b"page"))
        began = time.monotonic()
        read = 0
        # Twice what is asked for: a client that gets no turn on a busy machine makes up for it.
        while part := client.file.read(max(400, int(32_000 * (time.monotonic() - began)) - read)):
            read += len(part)
            time.sleep(0.012)
        assert read > 50_000
        assert time.monotonic() - began > 2 * SHORT.unread_within_s
