"""Secrets are replaced while buyers buy, operators look and payments come in, and no request is refused."""

import asyncio
import json
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import httpx2
import jwt
import pytest

from seckill.backends.payment.callback_signature import HEADER, signature
from seckill.bootstrap.engine import Engine, open_engine
from seckill.settings import Secret, Settings
from seckill.web.buyers import token_keys
from tests.api.conftest import ADMIN_KEY, JWT_SECRET, Node, make_node
from tests.patience import PATIENCE_S
from tests.web.buyers.test_token_keys import jwk, published
from tests.web.buyers.tokens import P256_KEY, RSA_KEY

NEW_JWT = Secret("pZ4wN8xC1vB6mQ9tR2yH7kL3sD5fG0jUaE")
OLD_PAYMENT, NEW_PAYMENT = Secret("bK2mV8qW5xT1zR7cN4pL9sH3dF6gJ0yUiA"), Secret("xQ7nD3wZ9vB5kT1mR8cL4pS6hF2gJ0yEoU")
NEW_ADMIN = Secret("c41fa97be2063d58a19e7406bd52f83c")
SIGNING: dict[str, tuple[Any, str]] = {"old": (RSA_KEY, "RS256"), "new": (P256_KEY, "ES256")}


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


@dataclass
class TokenShop:
    """Signs tokens with a key of its own, which it publishes."""

    node: Node
    sale_id: str
    kid: str = "old"
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)

    def key_set(self, *kids: str) -> tuple[int, bytes]:
        return 200, json.dumps({"keys": [{**jwk(SIGNING[kid][0]), "kid": kid} for kid in kids]}).encode()

    async def sell(self, closed: asyncio.Event) -> None:
        for number in count():
            if closed.is_set():
                return
            key, algorithm = SIGNING[kid := self.kid]
            claims = {"sub": f"buyer-{number}", "exp": int(time.time()) + 600}
            signed = jwt.encode(claims, key, algorithm, headers={"kid": kid})
            answer = await self.node.http.post(
                f"/v1/sales/{self.sale_id}/orders", headers={"Authorization": f"Bearer {signed}"}
            )
            self.answers[kid, answer.json().get("code", "accepted")] += 1
            await asyncio.sleep(0.005)

    async def answered(self) -> None:
        """Some more buyers, with the key of now."""
        before = self.of_now()
        async with asyncio.timeout(PATIENCE_S):
            while self.of_now() < before + 20:
                await asyncio.sleep(0.01)

    def of_now(self) -> int:
        return sum(times for (kid, _), times in self.answers.items() if kid == self.kid)

    async def fetched(self) -> None:
        """The node has fetched the keys that are published now: the second time from here, it asked after this call."""
        keys = self.node.api.context.buyers.keys
        enough = keys.version + 2
        async with asyncio.timeout(PATIENCE_S):
            while keys.version < enough:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("overlapping", [True, False])
async def test_an_issuer_replaces_its_key_under_load(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch, overlapping: bool
) -> None:
    """It publishes the new one before it signs with it; who does not wait for that has buyers refused."""
    monkeypatch.setattr(token_keys, "FETCHED_AGAIN_S", 0.05)
    monkeypatch.setattr(token_keys, "FETCHED_EVERY_S", 0.2)
    sale = await node.create(units=100_000, limit_per_buyer=1)
    closed = asyncio.Event()
    async with published() as (url, documents):
        another = await make_node(replace(settings, jwt_secret=None, jwks_url=url), engine)
        shop = TokenShop(another, sale["id"])
        documents.append(shop.key_set("old"))
        async with another.api.running(), asyncio.TaskGroup() as tasks:
            await shop.fetched()
            tasks.create_task(shop.sell(closed))
            await shop.answered()
            if overlapping:
                documents.append(shop.key_set("old", "new"))
                await shop.fetched()
            shop.kid = "new"
            await shop.answered()
            documents.append(shop.key_set("new"))
            await shop.fetched()
            await shop.answered()
            closed.set()
        await another.http.aclose()
    refused = {kid for kid, code in shop.answers if code != "accepted"}
    assert refused == (set() if overlapping else {"new"})
    assert min(shop.answers["old", "accepted"], shop.answers["new", "accepted"]) > 0
