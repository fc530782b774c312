"""Buyers: many at once, each sure to learn what became of its claim."""

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S

TRIES_MAX = 2000  # of 50 ms: a slow machine may need a minute to start everything again
UNCLEAR = {"unknown", "not_ready", "overloaded"}


@dataclass
class Crowd:
    """`orders`: user → id of the order that was accepted, with one of these `statuses`. `codes`: how the rest was
    answered."""

    stack: Stack
    sale: dict[str, Any]
    orders: dict[str, str] = field(default_factory=dict)
    codes: Counter[str] = field(default_factory=Counter)
    statuses: set[int] = field(default_factory=set)
    changed: list[str] = field(default_factory=list)
    retries: int = 0

    def __post_init__(self) -> None:
        limits = httpx2.Limits(max_connections=64, max_keepalive_connections=64)
        # A whole crowd waits for these connections, and waiting for one is not a failure of the server.
        patience = httpx2.Timeout(PATIENCE_S, pool=None)
        self._http = httpx2.AsyncClient(base_url=self.stack.url, timeout=patience, limits=limits)
        self.stack.clients.append(self._http)

    async def press(self, user: str, *, key: str | None = None, quantity: int = 1) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.stack.token(user)}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        url = f"/v1/sales/{self.sale['id']}/orders"
        return await self._http.post(url, json={"quantity": quantity}, headers=headers)

    async def buy(self, user: str, quantity: int = 1) -> None:
        """Repeats with the same key, as a good client does, until the answer is clear."""
        for _ in range(TRIES_MAX):
            try:
                response = await self.press(user, key=f"key of {user}", quantity=quantity)
            except httpx2.HTTPError:
                self.retries += 1
                await asyncio.sleep(0.05)
                continue
            code = "accepted" if response.status_code in (201, 202) else response.json()["code"]
            if code in UNCLEAR:
                self.retries += 1
                await asyncio.sleep(0.05)
                continue
            self.codes[code] += 1
            if code == "accepted":
                order_id = response.json()["order_id"]
                self.statuses.add(response.status_code)
                if self.orders.setdefault(user, order_id) != order_id:
                    self.changed.append(user)
            return
        raise AssertionError(f"{user} got no clear answer in {TRIES_MAX} tries")

    async def keep_buying(self, until: asyncio.Event, buyers: int) -> None:
        """New buyers without end, that many at a time."""
        numbers = itertools.count()

        async def one_after_the_other() -> None:
            while not until.is_set():
                await self.buy(f"buyer-{next(numbers)}")

        await asyncio.gather(*(one_after_the_other() for _ in range(buyers)))
