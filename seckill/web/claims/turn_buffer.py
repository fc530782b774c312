"""Sends the answers of one turn of the event loop together."""

import asyncio
from typing import Protocol

from seckill.native.ring_choice import Ring


class Answering(Protocol):
    """A connection with an answer to send."""

    loop: asyncio.AbstractEventLoop
    descriptor: int

    def send(self) -> None:
        """Sends the answer by itself, if it is still to be sent."""

    def take_answer(self) -> bytes:
        """Returns the answer, for the ring. Empty: there is none, or it cannot go that way and was sent."""

    def sent_in_part(self, answer: bytes, sent: int) -> None:
        """Called if the ring has sent this many bytes of the answer, or has failed with a negative error number."""


class TurnBuffer:
    """Answers wait here until the end of a turn, or until the callers of a batch have all been told. So the code for
    reading and the code for writing stay in the CPU's caches. Where there is a ring, a client or proxy on this machine
    is woken once for all of them, not for each."""

    def __init__(self, ring: Ring | None) -> None:
        self._ring = ring
        self._with_answers: list[Answering] = []

    def add(self, connection: Answering) -> None:
        if not self._with_answers:
            connection.loop.call_soon(self.send)
        self._with_answers.append(connection)

    def send(self) -> None:
        connections, self._with_answers = self._with_answers, []
        if self._ring is None or len(connections) < 2:
            for connection in connections:
                connection.send()
        else:
            self._send_at_once(self._ring, connections)

    def _send_at_once(self, ring: Ring, connections: list[Answering]) -> None:
        taken = [(connection, answer) for connection in connections if (answer := connection.take_answer())]
        unfinished = ring.send([connection.descriptor for connection, _ in taken], [answer for _, answer in taken])
        for place, sent in unfinished or ():
            connection, answer = taken[place]
            connection.sent_in_part(answer, sent)
