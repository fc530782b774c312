"""Secrets are replaced while buyers buy, operators look and payments come in, and no request is refused."""

import asyncio
import json
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count

import httpx2
import jwt
import pytest

from seckill.backends.payment.callback_signature import HEADER, signature
from seckill.bootstrap.engine import open_engine
from seckill.settings import Secret, Settings
from tests.api.conftest import ADMIN_KEY, JWT_SECRET, Node, make_node
from tests.patience import PATIENCE_S

NEW_JWT = Secret("pZ4wN8xC1vB6mQ9tR2yH7kL3sD5fG0jUaE")
OLD_PAYMENT, NEW_PAYMENT = Secret("bK2mV8qW5xT1zR7cN4pL9sH3dF6gJ0yUiA"), Secret("xQ7nD3wZ9vB5kT1mR8cL4pS6hF2gJ0yEoU")
NEW_ADMIN = Secret("c41fa97be2063d58a19e7406bd52f83c")


class Shop:
    """Signs tokens and payments and acts as an operator, with the secrets that it has at the moment."""

    def __init__(self, sale_id: str) -> None:
        self.sale_id = sale_id
        self.jwt = JWT_SECRET
        self.kid: str | None = None
        self.payment, self.admin = OLD_PAYMENT, Secret(ADMIN_KEY)
        self.answers: Counter[tuple[str, int]] = Counter()
        self.visitors: Counter[int] = Counter()  # by node
        self._numbers = count()

    def changes_its_secrets(self) -> None:
        self.jwt, self.kid = NEW_JWT, "2027"
        self.payment, self.admin = NEW_PAYMENT, NEW_ADMIN

    def token(self, user: str) -> str:
        claims = {"sub": user, "exp": int(time.time()) + 600}
        return jwt.encode(claims, self.jwt.reveal(), "HS256", headers={"kid": self.kid} if self.kid else None)

    async def visit(self, node: Node) -> None:
        self.visitors[id(node)] += 1
        try:
            await self._buy_and_look(node)
        finally:
            self.visitors[id(node)] -= 1

    async def _buy_and_look(self, node: Node) -> None:
        """A buyer buys, money comes in for the order, and an operator looks at it."""
        bought = await node.http.post(
            f"/v1/sales/{self.sale_id}/orders",
            headers={"Authorization": f"Bearer {self.token(f'buyer-{next(self._numbers)}')}"},
        )
        self._note("buyer", bought)
        await node.work()
        body = json.dumps(
            {
                "payment_id": f"p-{next(self._numbers)}",
                "order_id": bought.json().get("order_id", "none"),
                "amount_cents": 9900,
                "currency": "CNY",
            }
        ).encode()
        signed = {HEADER: signature(self.payment, body, int(time.time()))}
        self._note("payment", await node.http.post("/v1/payments/callback", content=body, headers=signed))
        looked = await node.http.get(
            "/v1/admin/orders?limit=1", headers={"Authorization": f"Bearer {self.admin.reveal()}"}
        )
        self._note("operator", looked)

    def _note(self, who: str, answer: httpx2.Response) -> None:
        self.answers[who, answer.status_code] += 1


class Fleet:
    """Nodes that are replaced one after the other while the shop is open."""

    def __init__(self, open_: AsyncExitStack) -> None:
        self.nodes: list[Node] = []
        self._open = open_

    async def start(self, settings: Settings) -> Node:
        return await make_node(settings, await self._open.enter_async_context(open_engine(settings)))

    async def roll(self, settings: Settings, shop: Shop) -> None:
        for place, gone in enumerate(self.nodes):
            self.nodes[place] = await self.start(settings)
            before = shop.answers.total()
            async with asyncio.timeout(PATIENCE_S):
                # With old ones and new ones side by side; and one that is taken away finishes what it has begun.
                while shop.answers.total() < before + 20 or shop.visitors[id(gone)]:
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize("overlapping", [True, False])
async def test_secrets_are_replaced_under_load(node: Node, settings: Settings, overlapping: bool) -> None:
    old = replace(settings, payment_provider="callback", payment_secret=OLD_PAYMENT)
    both = replace(
        old,
        jwt_secrets=(("2027", NEW_JWT),),
        payment_secret=NEW_PAYMENT,
        payment_secret_old=OLD_PAYMENT,
        admin_key=NEW_ADMIN,
        admin_key_old=Secret(ADMIN_KEY),
    )
    new = replace(both, jwt_secret=None, payment_secret_old=None, admin_key_old=None)
    sale = await node.create(units=100_000, limit_per_buyer=1)
    shop = Shop(sale["id"])
    closed = asyncio.Event()

    async def crowd() -> None:
        while not closed.is_set():
            for place in range(2):
                await shop.visit(fleet.nodes[place])
                await asyncio.sleep(0)  # an answer in the same process may come without a pause

    async with AsyncExitStack() as open_, asyncio.TaskGroup() as tasks:
        fleet = Fleet(open_)
        fleet.nodes = [await fleet.start(old), await fleet.start(old)]
        for _ in range(3):
            tasks.create_task(crowd())
        if overlapping:
            await fleet.roll(both, shop)
        shop.changes_its_secrets()
        await fleet.roll(new, shop)
        closed.set()
    refused = {who for (who, status) in shop.answers if status in (401, 403)}
    assert refused == (set() if overlapping else {"buyer", "payment", "operator"})
    for good in (("buyer", 202), ("payment", 200), ("operator", 200)):
        assert shop.answers[good] > 0
