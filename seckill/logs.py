"""Logging: one event is one line, nothing secret is in it, and failing to write it breaks nothing.

Our own events and those of libraries (uvicorn, alembic, sqlalchemy) go the same way to stderr. A value cannot
end its line or colour the terminal: what is not printable is escaped. Only in the console format do the lines
of a traceback follow the event, marked so that no text in them can pose as another event.
"""

import contextlib
import json
import logging
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from seckill.settings.redaction import names_a_secret, redact

Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]

# They log every statement and every connection; at `info` that would be several lines per order.
_TALKATIVE = ("aiosqlite", "alembic", "asyncio", "sqlalchemy", "urllib3", "uvicorn.error.websocket")
# They log every lost connection several times. We log it once.
_SILENT = ("aiormq", "opentelemetry")
# uvicorn gives these their own handlers when it is started with its default configuration.
_UVICORN = ("uvicorn", "uvicorn.access", "uvicorn.error", "uvicorn.asgi")
# Deeper than anything we log, and far from where recursion would fail.
_DEPTH_MAX = 8
_HIDDEN = "***"


def setup(log_format: Format, log_level: Level, stream: TextIO | None = None) -> None:
    """May be called again: the last call counts."""
    stream = stream or sys.stderr
    for_people = log_format == "console" or (log_format == "auto" and stream.isatty())
    early: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    late: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        hide_secrets,
        *(_console(stream) if for_people else [_render_json]),
    ]
    handler = _Handler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=early, processors=late))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *early,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    level = logging.getLevelNamesMapping()[log_level.upper()]
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    for name in _SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for name in _UVICORN:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def hide_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Also makes every value plain data, so that no object writes text of its own into the line."""
    return cast(EventDict, _plain(event, _DEPTH_MAX))


def _plain(value: object, depth: int) -> Any:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)  # JSON has no word for nan
        case str():
            return redact(value)
        case _ if depth == 0:
            return "…"
        case Mapping():
            return {
                str(key): _HIDDEN if names_a_secret(str(key)) else _plain(item, depth - 1)
                for key, item in value.items()
            }
        case bytes() | bytearray() | memoryview():
            return redact(repr(bytes(value)))
        case (str() | bytes() as name, _) if names_a_secret(str(name)):
            return [name if isinstance(name, str) else repr(name), _HIDDEN]  # a header, as ASGI keeps it
        case Sequence() | Set():
            return [_plain(item, depth - 1) for item in value]
        case _:
            return redact(_text(value))


def _text(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escape(char) for char in text)


def _render_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    # json.dumps does not escape some that can end a line or reverse the direction of writing.
    return _escaped(json.dumps(event, ensure_ascii=False), lambda char: json.dumps(char)[1:-1])


def _printable(text: str) -> str:
    return _escaped(text, lambda char: char.encode("unicode_escape").decode())


def _console(stream: TextIO) -> list[Processor]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=stream.isatty() and "NO_COLOR" not in os.environ,
        repr_native_str=True,  # quotes values, so that one value cannot look like several
        exception_formatter=structlog.dev.plain_traceback,
    )
    return [_prepare_for_console, renderer]


def _prepare_for_console(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The renderer shows names and these values as they are; every other value goes through repr."""
    event = {_printable(key): value for key, value in event.items()}
    for key in ("event", "logger_name"):
        if key in event:
            event[key] = _printable(str(event[key]))
    for key in ("exception", "stack"):
        if key in event:
            lines = str(event[key]).split("\n")
            event[key] = "\n".join(f"    │ {_printable(line)}" for line in lines)
    return event


class _Handler(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """When the disk is full or the pipe is closed, log lines are lost and nothing else: a sale goes on without its
        log."""
        error = sys.exception()
        if isinstance(error, OSError) or self.stream.closed:
            return
        # The event itself could not be made into text: say where it came from, without its values.
        with contextlib.suppress(Exception):
            place = f"{record.pathname}:{record.lineno}"
            self.stream.write(f"An event of {record.name} ({place}) cannot be logged: {type(error).__name__}.\n")
