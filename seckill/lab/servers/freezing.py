"""Stops processes. A process that is told to stop runs on for a moment, until each of its threads has noticed."""

import os
import signal
import time
from pathlib import Path

STOPPED = frozenset("TtZX")
POLL_S = 0.001


def freeze(pid: int) -> None:
    """Returns when no thread of the process runs any more."""
    os.kill(pid, signal.SIGSTOP)
    while any(_state(thread) not in STOPPED for thread in Path(f"/proc/{pid}/task").glob("*/stat")):
        time.sleep(POLL_S)


def _state(stat: Path) -> str:
    """See proc(5). The name before the state may contain any characters."""
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0]
    except OSError:  # the thread has ended
        return "X"
