"""One buyer's data: shown as a whole, taken out as a whole, and not before everything of theirs is at rest."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import insert, select

from seckill.audit import Verdict, open_auditor
from seckill.backends.redis.gate import connect
from seckill.backends.sql import SqlLedger, buyer_data
from seckill.backends.sql.line_tables import line_entries
from seckill.backends.sql.tables import dead_letters, metadata
from seckill.bootstrap.engine import Engine
from seckill.domain.admission import Admission
from seckill.domain.audience_list import digest_of
from seckill.domain.order_number import OrderNumber
from seckill.engine.orders.releases import ReleaseDesk
from seckill.engine.rounds.retirement import HEARD_AFTER_MS, RETIRE_AFTER_MS, Retirement
from seckill.ports.queue_entry import write_entry
from seckill.ports.transport import Delivery
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, token_with
from tests.fixtures.backends import value_of

ANN, BOB = "ann@example.com", "bob@example.com"
PHONES = {ANN: "+4915112345", BOB: "+4930987654"}


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def settings(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    return replace(settings, database_url=str(request.getfixturevalue(f"{request.param}_database")))


@dataclass
class Shop:
    node: Node
    redis: Any
    sale: dict[str, Any]
    orders: dict[str, str]

    @property
    def ledger(self) -> SqlLedger:
        assert isinstance(self.node.engine.ledger, SqlLedger)
        return self.node.engine.ledger

    async def ask(self, verb: str, user: str = ANN) -> Any:
        return await self.node.http.post(f"/v1/admin/buyers/{verb}", json={"buyer": user}, headers=OPERATOR)

    async def come_to_rest(self) -> None:
        """The round is over, and a day later the gate forgets it."""
        engine = self.node.engine
        ended = await self.node.http.post(f"/v1/sales/{self.sale['id']}/close", headers=OPERATOR)
        assert ended.status_code == 200
        await self.node.http.patch(
            f"/v1/sales/{self.sale['id']}", json={"ends_at": self.sale["server_time"]}, headers=OPERATOR
        )
        await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
        (round_,) = [sale.round for sale in await engine.ledger.sales() if sale.title == "Phone"]
        retirement = Retirement(engine.gate, engine.transport, engine.ledger)
        over_ms = round_.ends_ms + RETIRE_AFTER_MS + 1
        await retirement.step(over_ms)
        assert await retirement.step(over_ms + HEARD_AFTER_MS + 1) == 1

    async def everything(self) -> str:
        """All that the ledger and the gate hold."""
        found = []
        async with self.ledger.database.readers.connect() as connection:
            for table in metadata.sorted_tables:
                found += [str(tuple(row)) for row in await connection.execute(select(table))]
        for key in await self.redis.keys("*"):
            found.append(f"{key!r} {await value_of(self.redis, key)!r}")
        return "\n".join(found)


@pytest.fixture
async def shop(node: Node, engine: Engine, redis_url: str) -> AsyncIterator[Shop]:
    """Ann has paid, and Bob too; each is on two lists, has an order that was set aside, and was in a line."""
    redis: Any = connect(redis_url)
    sale = await node.create(units=9, limit_by="phone", audience={"list": True})
    later = await node.create(title="Next week", audience={"list": True})
    for each in (sale, later):
        csv = OPERATOR | {"Content-Type": "text/csv"}
        url = f"/v1/admin/sales/{each['id']}/audience"
        assert (await node.http.put(url, content=f"{ANN}\n{BOB}\n", headers=csv)).status_code == 200
    await node.refresh()
    orders = {}
    for user in (ANN, BOB):
        headers = {"Authorization": f"Bearer {token_with(user, phone=PHONES[user])}"}
        body = {"metadata": {"gift_for": f"the aunt of {user}"}}
        made = await node.http.post(f"/v1/sales/{sale['id']}/orders", json=body, headers=headers)
        assert made.status_code == 202, made.text
        orders[user] = made.json()["order_id"]
    made_shop = Shop(node, redis, sale, orders)
    yield made_shop
    await redis.aclose()


async def settle(shop: Shop) -> None:
    node = shop.node
    await node.work()
    ledger = shop.ledger
    (round_,) = [sale.round for sale in await ledger.sales() if sale.title == "Phone"]
    for n, user in enumerate((ANN, BOB)):
        paid = await node.http.post(f"/v1/orders/{shop.orders[user]}/pay", headers=buyer(user))
        assert paid.status_code == 200
        number = OrderNumber(1, round_.lane, n + 1)
        refused = Admission(
            number=number,
            round_id=round_.id,
            epoch=1,
            user=user,
            quantity=1,
            slot=1,
            request_id=f"request-{n}",
            admitted_ms=1,
            metadata=f'{{"to":"the aunt of {user}"}}',
            person=PHONES[user],
        )
        await ledger.set_aside(Delivery(round_.lane, f"1-{n}", write_entry(refused), refused), "too late", 0.0)
        async with ledger.database.writers.begin() as connection:
            done = dead_letters.update().values(state="discarded", next_ms=None)
            await connection.execute(done)
            entry = {"round_id": round_.id, "user_id": user, "quantity": 1, "state": 4, "joined_ms": 1, "place": n}
            await connection.execute(insert(line_entries).values(**entry, metadata=refused.metadata))


async def test_a_buyer_is_gone_and_the_books_hold(shop: Shop, settings: Settings) -> None:
    early = await shop.ask("erase")
    assert (early.status_code, early.json()["code"]) == (409, "still_moving")
    assert {(each["kind"], each["order_id"]) for each in early.json()["because"]} == {("queued", shop.orders[ANN])}
    await settle(shop)
    early = await shop.ask("erase")
    assert (early.status_code, [each["kind"] for each in early.json()["because"]]) == (409, ["round"])
    assert ANN in await shop.everything()
    await shop.come_to_rest()

    told = (await shop.ask("export")).json()
    (order,) = told["orders"]
    assert (order["order_id"], order["state"], order["person"]) == (shop.orders[ANN], "paid", PHONES[ANN])
    assert order["metadata"] == {"gift_for": f"the aunt of {ANN}"}
    assert [change["to_state"] for change in order["history"]] == ["unpaid", "paid"]
    assert [payment["amount_cents"] for payment in order["payments"]] == [9900]
    assert [len(told[name]) for name in ("queued", "entries", "set_aside", "lists")] == [0, 1, 1, 2]
    assert BOB not in str(told)

    done = await shop.ask("erase")
    assert done.status_code == 200, done.text
    assert done.json() == {"orders": 1, "entries": 1, "letters": 1, "events": 1, "lists": 2}
    left = await shop.everything()
    assert ANN not in left
    assert PHONES[ANN] not in left
    assert PHONES[BOB] in left
    assert BOB in left
    lists = [(await shop.ledger.audience.read_list(sale.id))[1] for sale in await shop.ledger.sales()]
    assert [list(digests) for digests in lists] == [[digest_of(BOB)]] * 2

    found = (await shop.node.http.get("/v1/admin/orders", headers=OPERATOR)).json()["orders"]
    assert shop.orders[ANN] in {row["order"]["order_id"] for row in found}
    events = (await shop.node.http.get("/v1/admin/events?limit=500", headers=OPERATOR)).text
    assert ANN not in events
    assert "erased-" in events
    again = (await shop.ask("export")).json()
    assert not any(again[name] for name in ("orders", "queued", "entries", "set_aside", "lists"))
    assert (await shop.ask("erase")).json() == dict.fromkeys(done.json(), 0)
    async with open_auditor(settings, every_round=True) as auditor:
        report = await auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, report.findings


@pytest.mark.parametrize("settings", ["postgres"], indirect=True)  # SQLite has one writer
async def test_what_is_bought_in_the_middle_of_it_keeps_its_name(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await settle(shop)
    await shop.come_to_rest()
    erase_events, node = buyer_data._erase_events, shop.node
    other = await node.create(title="Another")
    bought: list[str] = []

    async def buy_first(*args: Any) -> int:
        claim = await node.buy(other, ANN)
        assert claim.status_code == 202, claim.text
        await node.work()
        bought.append(claim.json()["order_id"])
        return await erase_events(*args)

    monkeypatch.setattr(buyer_data, "_erase_events", buy_first)
    assert (await shop.ask("erase")).json()["orders"] == 1
    seen = await node.http.get(f"/v1/orders/{bought[0]}", headers=buyer(ANN))
    assert (seen.status_code, seen.json()["state"]) == (200, "unpaid")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_what_still_moves_is_named_and_nothing_is_half_done(shop: Shop) -> None:
    """A refund that is not made yet, an order that is not decided yet, a place in a line."""
    await settle(shop)
    await shop.come_to_rest()
    async with shop.ledger.database.writers.begin() as connection:
        await connection.execute(dead_letters.update().where(dead_letters.c.user_id == ANN).values(state="dead"))
    before = await shop.everything()
    refused = await shop.ask("erase")
    assert [each["kind"] for each in refused.json()["because"]] == ["set_aside"]
    assert "replay or discard it first" in refused.json()["detail"]
    refund = {"return_unit": False, "reason": "broken"}
    url = f"/v1/admin/orders/{shop.orders[ANN]}/refund"
    assert (await shop.node.http.post(url, json=refund, headers=OPERATOR)).status_code == 200
    (next_week,) = [sale.round for sale in await shop.ledger.sales() if sale.title == "Next week"]
    async with shop.ledger.database.writers.begin() as connection:
        waits = {"round_id": next_week.id, "user_id": ANN, "quantity": 1, "state": 0, "joined_ms": 1, "place": 1}
        await connection.execute(insert(line_entries).values(**waits))
    kinds = {each["kind"] for each in (await shop.ask("erase")).json()["because"]}
    assert kinds == {"set_aside", "money", "line"}
    assert before.count(ANN) <= (await shop.everything()).count(ANN)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_who_may_ask_and_for_whom(node: Node) -> None:
    for verb in ("export", "erase"):
        url = f"/v1/admin/buyers/{verb}"
        assert (await node.http.post(url, json={"buyer": ANN}, headers=buyer(ANN))).status_code == 403
        spaced = await node.http.post(url, json={"buyer": " ann"}, headers=OPERATOR)
        assert (spaced.status_code, spaced.json()["code"]) == (422, "invalid")
        nobody = await node.http.post(url, json={"buyer": "nobody"}, headers=OPERATOR)
        assert nobody.status_code == 200
