"""Reads what the kernel knows about processes, see proc(5)."""

import os
from collections.abc import Iterable
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if parent_of(int(entry.name)) == pid:
                    found.append(int(entry.name))
            except OSError:  # gone meanwhile
                continue
    return found


def cpu_s(pids: Iterable[int]) -> float:
    """Returns the user and system time so far, including that of children that have ended."""
    total = 0
    for pid in pids:
        try:
            total += sum(map(int, _stat(pid)[11:15]))
        except OSError:
            continue
    return total * TICK_S


def _stat(pid: int) -> list[str]:
    """Returns the fields from the state on: the name before it may contain any characters."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
