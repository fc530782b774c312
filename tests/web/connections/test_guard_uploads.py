"""Operators' uploads may be large. Their sender must have the key and keep sending."""

import json
import time
from dataclasses import replace

import pytest

from seckill.web.requests.uploads import VOUCHERS, upload_to
from tests.web.connections.guarded import (
    LOOPS,
    SHORT,
    Guarded,
    ShortProtocol,
    is_quiet_and_empty,
    on_each_loop,
    without_deadlines,
)
from tests.web.connections.requests import CHUNKED, POST

server = pytest.fixture(params=LOOPS)(on_each_loop)
unhurried = pytest.fixture(without_deadlines)
quiet_and_empty = pytest.fixture(autouse=True)(is_quiet_and_empty)

UPLOAD = POST.replace(b"/echo", b"/v1/admin/sales/abc/vouchers")
EARLY = POST.replace(b"/echo", b"/v1/admin/sales/early/vouchers")
LARGE = 40 * SHORT.body_bytes_max


def test_which_addresses_take_more() -> None:
    assert upload_to(b"POST", b"/v1/admin/sales/abc/vouchers") is VOUCHERS
    assert upload_to(b"POST", b"/v1/admin/sales/abc/vouchers?x=1") is VOUCHERS
    for method, target in (
        (b"GET", b"/v1/admin/sales/abc/vouchers"),
        (b"POST", b"/v1/admin/sales/abc/vouchers/more"),
        (b"POST", b"/v1/admin/sales/a/b/vouchers"),
        (b"POST", b"/v1/sales/abc/orders"),
        (b"POST", b"//v1/admin/sales/abc/vouchers"),
    ):
        assert upload_to(method, target) is None


@pytest.mark.usefixtures("unhurried")
def test_an_upload_may_be_large_and_nothing_else(server: Guarded) -> None:
    with server.connect() as client:
        client.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % LARGE)
        client.send(b"x" * LARGE)
        assert json.loads(client.response().body)["body"] == LARGE
        client.send(POST + b"Content-Length: %d\r\n\r\n" % LARGE)  # on the same connection: as small as ever
        assert client.response().problem["code"] == "too_large"


@pytest.mark.usefixtures("unhurried")
def test_an_upload_has_a_limit_of_its_own(server: Guarded) -> None:
    with server.connect() as client:
        client.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % (VOUCHERS.bytes_max + 1))
        assert client.response().problem["code"] == "too_large"
        assert client.is_closed()


@pytest.mark.usefixtures("unhurried")
def test_an_upload_in_chunks(server: Guarded) -> None:
    chunk = b"%x\r\n%b\r\n" % (SHORT.body_bytes_max, b"x" * SHORT.body_bytes_max)
    with server.connect() as client:
        client.send(CHUNKED.replace(b"/echo", b"/v1/admin/sales/abc/vouchers") + chunk * 40 + b"0\r\n\r\n")
        assert json.loads(client.response().body)["body"] == LARGE


def test_an_upload_that_keeps_coming_may_take_longer_than_other_bodies(server: Guarded) -> None:
    pieces = 8
    with server.connect() as client:
        client.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % (pieces * 5000))
        began_s = time.monotonic()
        for _ in range(pieces):
            client.send(b"x" * 5000)
            time.sleep(SHORT.body_within_s / 4)
        took_s = time.monotonic() - began_s
        assert took_s > SHORT.body_within_s
        # On a machine that is too busy to send in time, all that is said here does not hold.
        assert client.response().status == 200 or took_s > SHORT.upload_within_s


def test_an_upload_that_trickles_is_cut(server: Guarded) -> None:
    with server.connect() as client:
        client.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % LARGE)
        client.drip(b"x" * 1000)
        assert client.response().problem["code"] == "timeout"
        assert client.is_closed()


def test_an_upload_ends_some_time(server: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShortProtocol, "limits", replace(SHORT, upload_within_s=1.0, upload_bytes_min=1))
    with server.connect() as client:
        client.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % LARGE)
        client.drip(b"x" * 1000)
        assert client.response().problem["code"] == "timeout"


@pytest.mark.usefixtures("unhurried")
def test_who_is_refused_before_the_body_is_read_sends_no_more_of_it(server: Guarded) -> None:
    with server.connect() as client:
        client.send(EARLY + b"Content-Length: %d\r\n\r\n" % VOUCHERS.bytes_max)
        assert client.response().status == 401
        assert client.sends_until_cut(b"x" * 1000)
