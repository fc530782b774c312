"""Waits for processes without fixed sleeps, and leaves none behind."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import PATIENCE_S

POLL_S = 0.01


def eventually(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    """True as soon as the condition holds, False when it never does. Blocks the thread."""
    give_up_at = time.monotonic() + within_s
    while not condition():
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(POLL_S)
    return True


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        if sys.platform != "linux":
            return True
        # An orphan stays a zombie until its parent collects it, which pid 1 of a container may never do.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):  # it may go between one question and the next
        return False


@contextmanager
def cleared(pid: int) -> Iterator[None]:
    """A process that a failing test would leave behind is killed."""
    try:
        yield
    finally:
        if running(pid):
            os.kill(pid, signal.SIGKILL)
