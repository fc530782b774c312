"""The stores of a version that was stopped in the middle of several sales, and what its users remember of them."""

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.asyncio import Redis

from seckill.backends.redis import keys
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer
from tests.api.test_line import Keeping, joined
from tests.api.test_vouchers import upload

# Unpaid orders must still be unpaid when a version of years to come reads them.
PAY_WITHIN_S = 2_000_000_000
# The name of a worker that took an entry and was killed.
KILLED = "a worker that was killed"

Told = dict[str, Any]


class World:
    """`told`: what buyers and the shop were told, by names of this world."""

    def __init__(self, node: Node, settings: Settings, redis: Redis) -> None:
        self.node = node
        self.settings = settings
        self.redis = redis
        self.told: Told = {"sales": {}, "orders": {}, "entries": {}, "webhook": ""}

    async def sale(self, name: str, **facts: Any) -> dict[str, Any]:
        ends_at = datetime.now(UTC) + timedelta(days=365 * 60)
        sale = await self.node.create(title=name, ends_at=ends_at.isoformat(), **facts)
        self.told["sales"][name] = {"id": sale["id"], "items": [item["item_id"] for item in sale.get("items", [])]}
        await self.node.refresh()
        return sale

    def let_nothing_expire(self) -> None:
        """No operator may give so much time."""
        with sqlite3.connect(self.settings.database_url.removeprefix("sqlite:///")) as ledger:
            ledger.execute("UPDATE sales SET pay_within_s = ?", (PAY_WITHIN_S,))
        ledger.close()

    async def order(self, sale: dict[str, Any], user: str, state: str, **body: Any) -> None:
        """Makes an order. It is `queued` unless the worker and its buyer do something about it."""
        accepted = await self.node.buy(sale, user, f"key-of-{user}", **body)
        assert accepted.status_code == 202, accepted.text
        order_id = accepted.json()["order_id"]
        if state != "queued":
            await self.node.work()
        if verb := {"cancelled": "cancel", "paid": "pay"}.get(state):
            done = await self.node.http.post(f"/v1/orders/{order_id}/{verb}", headers=buyer(user))
            assert done.status_code == 200, done.text
        self.told["orders"][user] = {"order_id": order_id, "sale": sale["title"], "state": state, "body": body}

    async def pass_time(self) -> None:
        await Keeping(self.node, self.settings).serve()

    async def make(self) -> Told:
        """Everything that is written comes first: what is queued when a worker runs is not queued any more."""
        http = self.node.http
        hook = {"url": "https://shop.example/seckill", "types": ["order.*"]}
        made = await http.post("/v1/admin/webhooks", json=hook, headers=OPERATOR)
        assert made.status_code == 201, made.text
        self.told["webhook"] = made.json()["id"]
        phone = await self.sale("phone", units=20, limit_per_buyer=2, lanes=2, metadata={"sku": "p-1"})
        coat = await self.sale(
            "coat", units=None, items=[{"title": "S", "units": 5}, {"title": "M", "units": 5, "price_cents": 5000}]
        )
        coupon = await self.sale("coupon", units=3, price_cents=0, vouchers=True)
        uploaded = await upload(self.node, coupon, "C-1\nC-2\nC-3\n")
        assert uploaded.status_code == 200, uploaded.text
        await self.pass_time()
        tea = await self.sale("tea", units=1, order="arrival")
        red, blue = [await self.sale(name, units=5, limit_group="colours") for name in ("red", "blue")]
        self.let_nothing_expire()
        small, medium = self.told["sales"]["coat"]["items"]
        await self.order(phone, "ann", "paid", metadata={"cart": "c-1"})
        await self.order(phone, "bob", "unpaid", quantity=2)
        await self.order(phone, "cat", "cancelled")
        await self.order(coat, "dan", "paid", item_id=small)
        await self.order(coat, "eve", "unpaid", item_id=medium)
        await self.order(coupon, "fay", "free")
        await self.order(red, "gus", "unpaid")
        for user in ("hal", "ida"):
            self.told["entries"][user] = (await joined(self.node, tea, user))["entry_id"]
        await self.pass_time()
        await self.order(phone, "jim", "queued", metadata={"cart": "c-2"})
        await self.order(phone, "kay", "queued")
        await self.order(coat, "leo", "queued", item_id=medium)
        await self.order(coupon, "mia", "queued")
        await self.order(blue, "ned", "queued")
        return self.told

    async def leave_one_with_a_killed_worker(self) -> None:
        """Its entry is delivered, but no worker settles it."""
        for lane in range(self.settings.lanes):
            taken: Any = await self.redis.xreadgroup(keys.WORKERS_GROUP, KILLED, {keys.orders(lane): ">"}, count=1)
            if taken:
                return
        raise AssertionError("nothing is queued")
