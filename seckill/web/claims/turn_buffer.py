"""Sends the answers of one turn of the event loop together."""

import asyncio
from typing import Protocol

import structlog

from seckill.native.ring_choice import Ring

log = structlog.get_logger()


class Answering(Protocol):
    """A connection with an answer to send."""

    loop: asyncio.AbstractEventLoop
    descriptor: int

    def send(self) -> None:
        """Sends the answer by itself, if it is still to be sent."""

    def take_answer(self) -> bytes:
        """Returns the answer, for the ring. Empty: there is none, or it cannot go that way and was sent."""

    def not_sent_whole(self, answer: bytes, sent: int) -> None:
        """Called if the ring has sent this many bytes of the answer, or none and says why with a negative number."""

    def break_off(self) -> None:
        """Closes the connection, because nothing may follow what was sent."""


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
        try:
            unfinished = ring.send([connection.descriptor for connection, _ in taken], [answer for _, answer in taken])
        except Exception:
            log.exception("it is not known which answers were sent", answers=len(taken))
            self._ring = None
            for connection, _ in taken:
                connection.break_off()
            return
        for place, sent in unfinished or ():
            connection, answer = taken[place]
            connection.not_sent_whole(answer, sent)
