"""The crowd: sends a number of presses at a time, spread over the shops, and times each from press to answer."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from seckill.lab.compare.strategy import AT_ONCE


@dataclass(slots=True)
class CrowdTally:
    """What the crowd was told."""

    accepted: dict[int, int] = field(default_factory=dict)  # order → buyer
    refused: int = 0
    failed: list[str] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)  # the shop died before it answered
    waits_ms: list[float] = field(default_factory=list)
    began_s: float = 0.0
    last_accepted_s: float = 0.0
    last_answer_s: float = 0.0

    @property
    def answered(self) -> int:
        return len(self.waits_ms)


class Crowd:
    def __init__(self, doors: Sequence[str]) -> None:
        self._doors = doors
        self.tally = CrowdTally()

    async def press(self, presses: Sequence[int]) -> None:
        """Press i goes to shop i modulo the number of shops, so presses side by side meet in different processes."""
        count = len(self._doors)
        queues = [deque(presses[number::count]) for number in range(count)]
        lines = [
            (await asyncio.open_unix_connection(door), queue)
            for door, queue in zip(self._doors, queues, strict=True)
            for _ in range(AT_ONCE // count)
        ]
        self.tally.began_s = self.tally.began_s or time.monotonic()
        await asyncio.gather(*(self._one_after_the_other(*line, queue) for line, queue in lines))

    async def _one_after_the_other(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, queue: deque[int]
    ) -> None:
        try:
            while queue:
                buyer = queue.popleft()
                began_s = time.monotonic()
                try:
                    writer.write(f"buy {buyer}\n".encode())
                    line = await reader.readline()
                except ConnectionError:
                    line = b""
                if not line:
                    self.tally.unanswered += [buyer, *queue]
                    queue.clear()
                    return
                self._note(buyer, line.decode().rstrip("\n"), began_s)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _note(self, buyer: int, answer: str, began_s: float) -> None:
        tally = self.tally
        now_s = time.monotonic()
        tally.waits_ms.append((now_s - began_s) * 1000)
        tally.last_answer_s = now_s
        word, _, rest = answer.partition(" ")
        if word == "accepted":
            tally.accepted[int(rest)] = buyer
            tally.last_accepted_s = now_s
        elif word == "refused":
            tally.refused += 1
        else:
            tally.failed.append(rest)

    async def ask(self, door: str, request: str) -> str:
        reader, writer = await asyncio.open_unix_connection(door)
        try:
            writer.write(f"{request}\n".encode())
            return (await reader.readline()).decode().strip()
        finally:
            writer.close()
            await writer.wait_closed()
