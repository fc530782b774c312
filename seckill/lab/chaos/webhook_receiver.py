"""A shop's receiver of webhooks, on loopback: at times it refuses, hangs up or is slow, until the faults are over."""

import asyncio
import math
import random
from collections.abc import Callable, Collection
from enum import StrEnum

from seckill.client import WebhookNotGenuine, verify_webhook
from seckill.lab.chaos.evidence import Arrival
from seckill.lab.chaos.feed_watch import digest


class Manner(StrEnum):
    TAKES = "takes"
    REFUSES = "refuses"
    HANGS_UP = "hangs up"  # reads the webhook but does not answer
    IS_SLOW = "is slow"


# Percentages, while faults happen.
MANNERS = {Manner.TAKES: 93, Manner.REFUSES: 4, Manner.HANGS_UP: 1, Manner.IS_SLOW: 2}
SLOW_S_MIN, SLOW_S_MAX = 0.5, 3.0
POLL_S = 0.2
# The lease of a killed keeper plus the longest wait of a delivery that was refused several times.
SILENT_S_MAX = 90.0


class WebhookReceiver:
    """`secret` is known once the API has registered the address."""

    def __init__(self, arrivals: list[Arrival], clock: Callable[[], float], seed: int) -> None:
        self.secret = ""
        self._arrivals = arrivals
        self._clock = clock
        self._dice = random.Random(f"{seed} receiver")  # noqa: S311 (chance, not a secret)
        self._calm = False
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Starts the receiver and returns its address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/webhooks"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def calm(self) -> None:
        """Takes everything at once from now on."""
        self._calm = True

    async def until_taken(self, event_ids: Collection[str]) -> None:
        """Waits until these have been taken, or until nothing has come for so long that nothing will."""
        count, since_s = -1, self._clock()
        while not {arrival.event_id for arrival in self._arrivals if arrival.taken} >= set(event_ids):
            if len(self._arrivals) > count:
                count, since_s = len(self._arrivals), self._clock()
            if self._clock() - since_s > SILENT_S_MAX:
                return
            await asyncio.sleep(POLL_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            headers, body = await _read(reader)
            manner = Manner.TAKES if self._calm else self._chosen()
            taken = manner in (Manner.TAKES, Manner.IS_SLOW)
            self._arrivals.append(self._judged(headers, body, taken=taken))
            if manner is Manner.IS_SLOW:
                await asyncio.sleep(self._dice.uniform(SLOW_S_MIN, SLOW_S_MAX))
            if manner is not Manner.HANGS_UP:
                status = b"204 No Content" if taken else b"500 Internal Server Error"
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the keeper was killed meanwhile
        finally:
            writer.close()

    def _chosen(self) -> Manner:
        (manner,) = self._dice.choices(list(MANNERS), list(MANNERS.values()))
        return manner

    def _judged(self, headers: dict[str, str], body: bytes, *, taken: bool) -> Arrival:
        try:
            # Accepts any age, because wrong clocks of keepers are among the faults.
            event = verify_webhook(body, headers, self.secret, tolerance_s=math.inf)
        except WebhookNotGenuine:
            return Arrival(event_id=headers.get("webhook-id", ""), digest="", genuine=False, taken=taken)
        told = digest(event.type, event.at, event.data)
        return Arrival(event_id=event.id, digest=told, genuine=True, taken=taken)


async def _read(reader: asyncio.StreamReader) -> tuple[dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    return headers, await reader.readexactly(int(headers["content-length"]))
