"""Follows the feed while faults happen, as a shop does: from whichever API process answers, with its cursor kept."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec

from seckill.client import AsyncClient, ClientError, Conflict, Event
from seckill.lab.chaos.evidence import EventSeen, FeedSeen

ANSWER_WITHIN_S = 8.0
# Long enough to be a long poll, short enough not to outlast the run.
WAIT_S = 1.0
# Without a pause, each event would take a request of its own.
PAUSE_S = 0.2
PAGE = 1000
# When the faults are over, a process answers within this time, however slow the machine is.
END_WITHIN_S = 60.0


@asynccontextmanager
async def open_nodes(ports: Sequence[int], key: str) -> AsyncIterator[list[AsyncClient]]:
    """Opens clients that repeat nothing by themselves: after a failure, the next node is asked instead."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                AsyncClient(f"http://127.0.0.1:{port}", key, within_s=ANSWER_WITHIN_S, repeat_for_s=0)
            )
            for port in ports
        ]


class FeedWatch:
    def __init__(self, nodes: Sequence[AsyncClient], seen: FeedSeen, clock: Callable[[], float]) -> None:
        self._nodes = nodes
        self._turn = 0
        self._seen = seen
        self._clock = clock
        self._cursor = 0

    async def follow(self, enough: asyncio.Event) -> None:
        while not enough.is_set():
            await self._read_on(WAIT_S)
            await asyncio.sleep(PAUSE_S)

    async def read_to_end(self) -> bool:
        """Reads on to the end and returns whether it got there."""
        give_up_at_s = self._clock() + END_WITHIN_S
        while (found := await self._read_on(0)) != 0:
            if self._clock() > give_up_at_s:
                return False
            if found is None:
                await asyncio.sleep(PAUSE_S)
        return True

    async def read_again(self) -> None:
        """Reads the feed from the beginning, like another shop that starts late."""
        seen = FeedSeen()
        if await FeedWatch(self._nodes, seen, self._clock).read_to_end():
            self._seen.again = seen.followed

    async def _read_on(self, wait_s: float) -> int | None:
        """Returns how many events there were, or None for no answer; then the next process is asked."""
        node = self._nodes[self._turn % len(self._nodes)]
        try:
            page = await node.events(after=self._cursor, limit=PAGE, wait_s=wait_s)
        except ClientError as error:
            if isinstance(error, Conflict):
                self._seen.refused.append(f"after {self._cursor}: {error}")
            self._seen.resumed += 1
            self._turn += 1
            return None
        self._seen.followed += [_seen(event) for event in page.events]
        self._cursor = page.next
        return len(page.events)


def _seen(event: Event) -> EventSeen:
    order_id = str(event.data.get("order_id", ""))
    return EventSeen(
        cursor=event.cursor,
        id=event.id,
        type=event.type,
        about=_about(event.type, event.data),
        subject=str(event.data.get("entry_id") or order_id or event.data["sale_id"]),
        order_id=order_id,
        digest=digest(event.type, event.at, event.data),
    )


def _about(type_: str, data: Mapping[str, Any]) -> str:
    if type_ == "payment.received":
        return payment(data["payment_id"])
    if type_ == "refund.requested":
        return refund(data["refund_id"])
    return str(data["order_id"]) if type_.startswith("order.") else ""


def payment(ref: str) -> str:
    return f"payment {ref}"


def refund(id_: int | str) -> str:
    return f"refund {id_}"


def digest(type_: str, at: datetime, data: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode([type_, at, data], order="sorted")).hexdigest()
