"""Prints results: tables for operators, one JSON document for programs."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

# Without a terminal there is no width to fit into, and nothing may be cut off.
_WIDTH_ELSEWHERE = 240


class _Output(Console):
    def on_broken_pipe(self) -> None:
        """Leaves it to the command line to end the command: here its exit code would say that something is broken."""
        raise


def console() -> Console:
    return _Output(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE, highlight=False)


def table(*columns: str) -> Table:
    made = Table(box=None, header_style="bold", show_header=bool(columns), pad_edge=False)
    for position, column in enumerate(columns):
        # The first column is copied into the next command, so it stays on one line. On a narrow terminal the others are
        # wrapped rather than cut off.
        made.add_column(column, no_wrap=position == 0, overflow="fold")
    return made


def instant(rfc3339: str) -> str:
    """Formats a time to the second: 2026-11-15 20:41:05Z."""
    return f"{datetime.fromisoformat(rfc3339).astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Shows on stderr what is being done: one line that changes, or without a terminal a line for each change."""
    shown = Console(stderr=True, highlight=False)
    if shown.is_terminal:
        with shown.status("starting") as status:
            yield lambda what: status.update(what)
        return
    said = ""

    def say(what: str) -> None:
        nonlocal said
        if what != said:
            shown.print(f"{what} …", soft_wrap=True)
        said = what

    yield say
