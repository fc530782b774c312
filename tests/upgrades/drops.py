"""One small sale after the other, without a pause: operators announce, crowds press, some pay, some give back. Each is
judged as its buyers see it at once, and as the ledger has it at the end."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.api.conftest import sale_body
from tests.patience import PATIENCE_S
from tests.upgrades.fleet import OPERATOR, Fleet, buyer

UNITS = 6
AT_ONCE = 3
PAUSE_S = 0.04  # of each of them between two presses: the machine has to start processes meanwhile
UNCLEAR = {"not_ready", "overloaded", "unknown"}  # the 503 that are documented, each with Retry-After


@dataclass
class Drop:
    """`yes`: buyer → order that was promised. `items`: how many live orders there are of each."""

    sale: dict[str, Any]
    items: Counter[str | None]
    yes: dict[str, str] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    paid: set[str] = field(default_factory=set)

    @property
    def each(self) -> int:
        """Units of an item; of a sale without items, all."""
        return UNITS // len(self.items)

    def state(self, user: str) -> str:
        return "cancelled" if user in self.cancelled else "paid" if user in self.paid else "unpaid"


@dataclass
class Drops:
    fleet: Fleet
    http: httpx2.AsyncClient
    drops: list[Drop] = field(default_factory=list)
    over: int = 0
    cuts: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    _turns: Iterator[int] = field(default_factory=itertools.count)

    async def ask(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> httpx2.Response:
        """The clear answer: as a good client, it repeats what was cut off and what may be repeated, and it asks the
        nodes in turns."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                url = self.fleet.serving[next(self._turns) % len(self.fleet.serving)]
                try:
                    answer = await self.http.request(method, url + path, headers=headers, json=body)
                except httpx2.HTTPError:
                    if url not in self.fleet.changing:
                        raise
                    self.cuts += 1
                    continue
                code = str(answer.status_code) if answer.is_success else answer.json()["code"]
                self.answers[code] += 1
                if answer.status_code >= 500:
                    assert answer.status_code == 503, answer.text
                    assert code in UNCLEAR, answer.text
                    assert "Retry-After" in answer.headers, answer.text
                elif code not in ("unknown_sale", "unknown_order"):  # this node has not heard of it yet
                    return answer
                await asyncio.sleep(PAUSE_S)

    async def run(self, until: asyncio.Event) -> None:
        for number in itertools.count():
            if until.is_set():
                return
            await self.drop(number)
            self.over += 1

    async def drop(self, number: int) -> None:
        body = sale_body(title=f"Drop {number}", units=UNITS)
        if number % 2:
            of_item = {"units": UNITS // 2, "price_cents": 9900}
            body |= {
                "units": None,
                "price_cents": None,
                "items": [{"title": "Red", **of_item}, {"title": "Blue", **of_item}],
            }
        body = {name: value for name, value in body.items() if value is not None}
        made = await self.ask("POST", "/v1/sales", OPERATOR | {"Idempotency-Key": f"drop-{number}"}, body)
        assert made.is_success, made.text
        sale = made.json()
        items: list[str | None] = [item["item_id"] for item in sale.get("items", [])] or [None]
        drop = Drop(sale, Counter(dict.fromkeys(items, 0)))
        self.drops.append(drop)
        buyers = (f"buyer-{number}-{place}" for place in itertools.count())
        await asyncio.gather(*(self._crowd(drop, buyers) for _ in range(AT_ONCE)))
        last = await self._press(drop, f"late-{number}", items[0], "late")
        assert last.json()["code"] == "sold_out", last.text

    async def _crowd(self, drop: Drop, buyers: Iterator[str]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while wanted := [item for item, live in drop.items.items() if live < drop.each]:
                await self._buy(drop, next(buyers), wanted[next(self._turns) % len(wanted)])
                await asyncio.sleep(PAUSE_S)

    async def _press(self, drop: Drop, user: str, item: str | None, key: str) -> httpx2.Response:
        body = {"metadata": {"of": user}} | ({} if item is None else {"item_id": item})
        return await self.ask("POST", f"/v1/sales/{drop.sale['id']}/orders", buyer(user, f"{key} {user}"), body)

    async def _buy(self, drop: Drop, user: str, item: str | None) -> None:
        answer = await self._press(drop, user, item, "first")
        if not answer.is_success:
            assert answer.json()["code"] == "sold_out", answer.text
            return
        order_id = answer.json()["order_id"]
        assert order_id not in drop.yes.values(), "one order for two buyers"
        drop.yes[user] = order_id
        place = len(drop.yes)
        drop.items[item] += 1
        assert drop.items[item] <= drop.each, f"{drop.sale['title']} is oversold"
        # The same key, and another one, at whichever node it is: both know the order.
        assert (await self._again(drop, user, item, "first")).json()["order_id"] == order_id, f"{user} has two orders"
        refused = (await self._again(drop, user, item, "second")).json()
        assert (refused["code"], refused["order_ids"]) == ("limit_reached", [order_id]), refused
        match place:
            case 2:  # and another buyer buys its unit
                await self._settle(drop, user, "cancel")
                drop.cancelled.add(user)
                drop.items[item] -= 1
            case 4:
                await self._settle(drop, user, "pay")
                drop.paid.add(user)

    async def _again(self, drop: Drop, user: str, item: str | None, key: str) -> httpx2.Response:
        """A node that has not heard yet that a unit came back says `sold_out` also to who has bought it elsewhere."""
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await self._press(drop, user, item, key)).json().get("code") == "sold_out":
                await asyncio.sleep(PAUSE_S)
        return answer

    async def _settle(self, drop: Drop, user: str, verb: str) -> None:
        path = f"/v1/orders/{drop.yes[user]}"
        async with asyncio.timeout(PATIENCE_S):
            while (order := await self.ask("GET", f"{path}?wait=5", buyer(user))).json()["state"] == "queued":
                pass
        assert order.json()["state"] == "unpaid", order.text
        assert order.json()["metadata"] == {"of": user}
        done = await self.ask("POST", f"{path}/{verb}", buyer(user))
        assert done.status_code == 200, done.text

    async def pay_an_old_one(self) -> None:
        """A buyer who bought a while ago, from any version, presses again and pays now."""
        drop = next(drop for drop in self.drops[: self.over] if len(drop.paid) == 1)
        user = next(user for user in drop.yes if user not in drop.cancelled | drop.paid)
        await self._settle(drop, user, "pay")
        drop.paid.add(user)

    async def judge(self) -> None:
        """All at rest: every yes is an order, there is no other, and of each drop exactly all is sold."""
        for drop in self.drops:
            await self._judge_units(drop)
        exported = await self.ask("GET", "/v1/admin/orders.jsonl", OPERATOR)
        orders = [json.loads(line) for line in exported.text.splitlines()]
        promised = {(drop.sale["id"], user, order_id) for drop in self.drops for user, order_id in drop.yes.items()}
        written = [(order["sale_id"], order["buyer"], order["order_id"]) for order in orders]
        assert not promised - set(written), "a yes is lost"
        assert not set(written) - promised, "an order that nobody was promised"
        assert len(written) == len(promised), "an order is there twice"
        states = {drop.yes[user]: drop.state(user) for drop in self.drops for user in drop.yes}
        assert {order["order_id"]: order["state"] for order in orders} == states
        dead = await self.ask("GET", "/v1/admin/dead", OPERATOR)
        assert dead.json()["dead"] == [], dead.text

    async def _judge_units(self, drop: Drop) -> None:
        path = f"/v1/sales/{drop.sale['id']}/custody"
        async with asyncio.timeout(PATIENCE_S):
            while (custody := (await self.ask("GET", path, OPERATOR)).json())["queued"] or custody["returning"]:
                await asyncio.sleep(0.05)
        found = {name: custody[name] for name in ("total", "available", "dead", "sold", "paid")}
        assert found == {"total": UNITS, "available": 0, "dead": 0, "sold": UNITS, "paid": len(drop.paid)}, drop.sale
