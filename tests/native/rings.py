"""The ring in Python: the same results, with one call of the system for each answer."""

import os
import socket
from collections.abc import Sequence

NO_FURTHER = getattr(socket, "MSG_DONTWAIT", 0) | getattr(socket, "MSG_NOSIGNAL", 0)


class OneByOne:
    def send(self, descriptors: list[int], answers: list[bytes], /) -> Sequence[tuple[int, int]] | None:
        sent = [_send(each, answer) for each, answer in zip(descriptors, answers, strict=True)]
        return [(place, n) for place, n in enumerate(sent) if n != len(answers[place])] or None


def _send(descriptor: int, answer: bytes) -> int:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            return connection.send(answer, NO_FURTHER)
    except OSError as error:
        return -(error.errno or 0)
