"""Delivers alarms to the address that the operator has set, one after another, and repeats each until it is accepted.

Raising an alarm does not wait for its delivery. Alarms that cannot be delivered wait in a bounded queue in memory and
are given up after an hour; the log has them as well.

Several keepers see the same trouble. The one that has the turn sends the alarm. A keeper that dies loses its turn
within seconds. If the board cannot say whose turn it is, every keeper sends: twice is better than not at all.
"""

import asyncio
import hashlib
import json
import random
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import structlog

from seckill import http_call
from seckill.errors import SeckillError
from seckill.ports.board import TellingBoard, Turn, own_name
from seckill.telemetry import ALARMS

log = structlog.get_logger()

TIMEOUT_S = 5.0
RETRY_S_MIN = 1.0
RETRY_S_MAX = 60.0
GIVE_UP_AFTER_S = 3600.0
# How many alarms of one kind may wait. Further ones are only counted in the last of them: a thousand orders that fail
# for the same reason are one piece of news.
SAME_WAITING_MAX = 20
# How long a turn lasts: longer than one try. While another keeper has the turn, this one asks again this often.
TURN_S = 3 * TIMEOUT_S
ASK_AGAIN_S = 0.25
# How much later than the first keeper another one may see the same trouble. Shorter than the time after which it is
# news again.
TOLD_FOR_S = 300.0


@dataclass(slots=True)
class _Waiting:
    message: Mapping[str, object]
    since_s: float
    more: int = 0

    @property
    def about(self) -> str:
        return str(self.message.get("dedup_key", ""))

    @property
    def digest(self) -> str:
        """Is the same for every process that wants to send this alarm, whenever it saw the trouble."""
        said = {name: value for name, value in self.message.items() if name not in ("at", "runbook")}
        text = json.dumps(said, default=str, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def body(self) -> bytes:
        return json.dumps({**self.message, **({"more": self.more} if self.more else {})}, default=str).encode()


class AlarmPost:
    def __init__(
        self, url: str, monotonic: Callable[[], float] = time.monotonic, board: TellingBoard | None = None
    ) -> None:
        self._url = url
        self._monotonic = monotonic
        self._board = board
        self._name = own_name()
        self._last_words = False
        self._waiting: deque[_Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None

    def put(self, message: Mapping[str, object]) -> None:
        kind = _kind(message)
        same = [each for each in self._waiting if _kind(each.message) == kind]
        if len(same) >= SAME_WAITING_MAX:
            same[-1].more += 1
            return
        self._waiting.append(_Waiting(message, self._monotonic()))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())

    async def drain(self, within_s: float) -> None:
        """Sends what is still waiting, as far as the time allows, without waiting for other keepers."""
        self._last_words = True
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=within_s)
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        if self._waiting:
            log.error("alarms were not delivered", count=len(self._waiting))

    async def _send_all(self) -> None:
        retry_s = RETRY_S_MIN
        while self._waiting:
            first = self._waiting[0]
            turn = await self._turn(first)
            if turn is Turn.WAIT:
                await asyncio.sleep(ASK_AGAIN_S)
                continue
            if turn is Turn.TOLD:
                ALARMS.labels("elsewhere").inc()
                self._waiting.popleft()
                continue
            failure = await self._send(first)
            if failure is None:
                ALARMS.labels("delivered").inc()
                await self._note(first)
                retry_s = RETRY_S_MIN
            elif self._monotonic() - first.since_s > GIVE_UP_AFTER_S:
                ALARMS.labels("given_up").inc()
                log.error("an alarm could not be delivered, and is given up", reason=failure)
            else:
                ALARMS.labels("failed").inc()
                if retry_s == RETRY_S_MIN:
                    log.warning("an alarm could not be delivered, and is tried again", reason=failure)
                await asyncio.sleep(retry_s * random.uniform(0.5, 1.0))  # noqa: S311 (jitter, not a secret)
                retry_s = min(2 * retry_s, RETRY_S_MAX)
                continue
            self._waiting.popleft()

    async def _turn(self, waiting: _Waiting) -> Turn:
        if self._board is None:
            return Turn.GO
        try:
            turn = await self._board.turn_to_tell(waiting.about, waiting.digest, self._name, TURN_S)
        except SeckillError:
            return Turn.GO
        return Turn.GO if turn is Turn.WAIT and self._last_words else turn

    async def _note(self, waiting: _Waiting) -> None:
        if self._board is not None:
            with suppress(SeckillError):  # then another keeper sends it as well
                await self._board.told(waiting.about, waiting.digest, TOLD_FOR_S)

    async def _send(self, waiting: _Waiting) -> str | None:
        return await send(self._url, waiting.body())


async def send(url: str, body: bytes) -> str | None:
    """Tries once. Returns why the alarm was not accepted, or None if it was."""
    try:
        async with asyncio.timeout(2 * TIMEOUT_S):  # also bounds an answer that comes byte by byte
            await asyncio.to_thread(_post, url, body)
    except http_call.FAILURES as error:
        return str(error) or type(error).__name__
    return None


def _post(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 (checked)
    with http_call.open_url(request, TIMEOUT_S):
        pass


def _kind(message: Mapping[str, object]) -> tuple[object, object]:
    return message.get("alarm"), message.get("resolved")
