"""Opens a ring for sending many answers at once (`ring.c`), where there is one: on Linux, if it is compiled and the
system lets this process have it. Containers often do not."""

import socket
from collections.abc import Sequence
from typing import Protocol

from seckill.native.kernel_choice import KERNEL

# The answers to one full call to the gate.
ENTRIES = 512


class Ring(Protocol):
    def send(self, descriptors: list[int], answers: list[bytes], /) -> Sequence[tuple[int, int]] | None:
        """Sends each answer over the connection with the descriptor in the same place, without waiting for any client.
        Returns None if each was sent whole. Otherwise returns the indices of those that were not, each with the number
        of bytes that were sent, or with a negative error number. After an exception it is not known what was sent."""


def open_ring() -> Ring | None:
    """Each process has to open its own."""
    if KERNEL is None or not hasattr(KERNEL, "Ring"):
        return None
    try:
        ring: Ring = KERNEL.Ring(ENTRIES)
        return ring if _sends(ring) else None
    except OSError:
        return None


def _sends(ring: Ring) -> bool:
    """Tries it, because something may only pretend to be such a system."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        return ring.send([ours.fileno()], [b"tried"]) is None and theirs.recv(8) == b"tried"
