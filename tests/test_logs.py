import io
import json
import logging
import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from seckill import logs
from seckill.settings import Secret

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers, root.level)
    yield
    root.handlers, level = before
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().split("\n")[:-1]]


def test_an_event_is_a_line_of_json(stream: io.StringIO) -> None:
    logs.setup("json", "info", stream)
    structlog.get_logger("seckill.worker").info("batch_written", orders=3, sale="茶", took_s=0.25, late=None)
    [event] = lines(stream)
    assert event.pop("timestamp").endswith("Z")
    assert event == {
        "event": "batch_written",
        "level": "info",
        "logger": "seckill.worker",
        "orders": 3,
        "sale": "茶",
        "took_s": 0.25,
        "late": None,
    }


def test_libraries_go_the_same_way(stream: io.StringIO) -> None:
    for name in ("uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).addHandler(logging.StreamHandler(io.StringIO()))
    logs.setup("json", "info", stream)
    structlog.contextvars.bind_contextvars(request="r1")
    logging.getLogger("uvicorn.error").info("Started server process [%d]", 7)
    logging.getLogger("uvicorn.access").info("%s", "GET /")
    logging.getLogger("alembic.runtime.migration").warning("Running upgrade")
    logging.getLogger("sqlalchemy.engine").info("SELECT 1")
    assert [(event["logger"], event["event"], event["request"]) for event in lines(stream)] == [
        ("uvicorn.error", "Started server process [7]", "r1"),
        ("uvicorn.access", "GET /", "r1"),
        ("alembic.runtime.migration", "Running upgrade", "r1"),
    ]


def test_the_level_holds_for_all(stream: io.StringIO) -> None:
    logs.setup("json", "warning", stream)
    structlog.get_logger("a").info("no")
    logging.getLogger("b").info("no")
    structlog.get_logger("a").warning("yes")
    logging.getLogger("sqlalchemy.pool").warning("yes")
    assert [event["event"] for event in lines(stream)] == ["yes", "yes"]


def test_logs_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup("auto", "info")
    structlog.get_logger("a").info("hello")
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["event"] == "hello"  # no terminal, so JSON


def test_on_a_terminal_auto_is_for_people() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal, os.fdopen(leader, "rb") as screen:
        logs.setup("auto", "info", terminal)
        structlog.get_logger("a").info("hello", units=3)
        shown = screen.read1(4096).decode()
    assert not shown.startswith("{")
    assert "hello" in shown
    assert "\x1b[" in shown


NASTY = [
    'x\r\n{"event": "sale_closed"}',
    "x\n2030-01-01T00:00:00Z [info     ] sale_closed",
    "\x1b[2J\x1b[31mred",
    "a\x00b\x07c\x7fd\x9be",
    "line\u2028separator\u2029and\x85next",
    "\u202eright to left",
    "half a pair \ud800",
    "${jndi:ldap://x} %s %(message)s {0}",
    "tab\tand\vfeed\f",
]


# S25: whatever a value holds, one event is one line, and the line has no control characters.
@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize("text", NASTY)
def test_a_value_cannot_make_a_line(stream: io.StringIO, log_format: logs.Format, text: str) -> None:
    logs.setup(log_format, "info", stream)
    structlog.get_logger("a").info("seen", user=text, nested={"of": [text, {text: text}]}, logger_name=text)
    structlog.get_logger("a").info(text, **{text: 1})
    logging.getLogger("uvicorn.error").warning("bad request %s", text)
    written = stream.getvalue().split("\n")
    assert len(written) == 4
    assert written.pop() == ""
    assert all(line.isprintable() for line in written)
    if log_format == "json":
        events = lines(stream)
        assert events[0]["user"] == events[1]["event"] == text  # escaped on the line, whole for who reads it


def test_objects_cannot_make_a_line_either(stream: io.StringIO) -> None:
    class Rude:
        def __repr__(self) -> str:
            return "rude\nobject Bearer abcd.efgh"

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    logs.setup("console", "info", stream)
    structlog.get_logger("a").info("seen", rude=Rude(), broken=Broken(), data=b"a\nb", error=ValueError("a\nb"))
    assert stream.getvalue().count("\n") == 1
    assert "abcd.efgh" not in stream.getvalue()
    assert "<Broken that cannot be shown>" in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_an_exception_stays_with_its_event(stream: io.StringIO, log_format: logs.Format) -> None:
    logs.setup(log_format, "info", stream)
    try:
        raise ValueError("x\n2030-01-01T00:00:00Z [info     ] sale_closed redis://:hunter2@h \x1b[31m")
    except ValueError:
        structlog.get_logger("a").exception("batch_failed")
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    text = stream.getvalue()
    assert "hunter2" not in text
    assert "\x1b" not in text
    assert text.count("ValueError: x") == 2
    if log_format == "json":
        assert [event["level"] for event in lines(stream)] == ["error", "error"]
        assert all("Traceback" in event["exception"] for event in lines(stream))
    else:
        events = [line for line in text.splitlines() if not line.startswith("    │ ")]
        assert len(events) == 2


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_secrets_are_not_written(stream: io.StringIO, log_format: logs.Format) -> None:
    logs.setup(log_format, "info", stream)
    structlog.get_logger("a").info(
        f"GET /v1/ws?token={JWT}",
        token="hidden-1",
        Authorization="hidden-2",
        body={"deep": [{"new_password": "hidden-3", "X-Admin-Key": "hidden-4"}]},
        headers=[(b"Cookie", b"hidden-5"), (b"authorization", b"Bearer hidden-6"), ("x", "Bearer hidden-7")],
        note="sent bearer  hidden-8, then Basic hidden+9/=",
        url="postgresql://shop:hidden-10@db/shop",
        loose=JWT,
        raw=f"Bearer {JWT}".encode(),
        secret=Secret("hidden-11"),
        set_cookie={"hidden-12"},
        deeper={"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": "hidden-13"}}}}}}}}},
    )
    logging.getLogger("uvicorn.access").info('%s - "GET /v1/orders?access_token=%s HTTP/1.1"', "1.2.3.4", "hidden-14")
    text = stream.getvalue()
    assert "hidden" not in text
    assert JWT not in text
    assert "c2lnbmF0dXJl" not in text
    assert "shop:***@db/shop" in text


def test_harmless_values_are_left_alone(stream: io.StringIO) -> None:
    logs.setup("json", "info", stream)
    values = {
        "url": "http://127.0.0.1:8000/sales/7K3M",
        "user": "ann@shop.example",
        "text": "the bearer of bad news",
        "many": [1, 2.5, True, None, {"a": "b"}],
    }
    structlog.get_logger("a").info("seen", **values)
    [event] = lines(stream)
    assert {key: event[key] for key in values} == values


def test_numbers_that_json_has_no_word_for(stream: io.StringIO) -> None:
    logs.setup("json", "info", stream)
    structlog.get_logger("a").info("seen", ratio=float("nan"), top=float("inf"))
    [event] = lines(stream)
    assert (event["ratio"], event["top"]) == ("nan", "inf")


class FullDisk(io.StringIO):
    def write(self, text: str, /) -> int:
        raise OSError(28, "No space left on device")


class BrokenPipe(io.StringIO):
    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("kind", [FullDisk, BrokenPipe])
def test_a_log_that_cannot_be_written_breaks_nothing(
    kind: type[io.StringIO], capsys: pytest.CaptureFixture[str]
) -> None:
    logs.setup("json", "info", kind())
    structlog.get_logger("a").info("hello")
    logging.getLogger("uvicorn.error").info("hello")
    assert capsys.readouterr() == ("", "")


def test_a_closed_stream_breaks_nothing(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    logs.setup("json", "info", stream)
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    structlog.get_logger("a").info("hello")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_real_full_disk_breaks_nothing() -> None:
    full = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115 (closing it fails, and that is asserted)
    logs.setup("json", "info", full)
    for _ in range(3):
        structlog.get_logger("a").info("hello")
    with pytest.raises(OSError, match="No space"):
        full.close()


def test_an_event_that_cannot_be_made_into_text_is_named(stream: io.StringIO) -> None:
    logs.setup("json", "info", stream)
    logging.getLogger("library").info("%d units of %s", "hunter2")
    text = stream.getvalue()
    assert text.startswith("An event of library (")
    assert text.endswith("cannot be logged: TypeError.\n")
    assert "hunter2" not in text


def test_a_logger_made_before_the_setup_follows_it(stream: io.StringIO) -> None:
    early = structlog.get_logger("early")
    logs.setup("json", "info", stream)
    early.info("first")
    other = io.StringIO()
    logs.setup("console", "info", other)
    early.info("second")
    assert [event["event"] for event in lines(stream)] == ["first"]
    assert "second" in other.getvalue()
