"""A shop's metadata about a claim travels from the press to the order, whatever happens on the way."""

import csv
import io
import json
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.domain.dead_letter import LetterState
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.dead_letters import DeadLetterDesk
from tests.api.conftest import OPERATOR, Node, buyer
from tests.api.test_rebuild import rebuild
from tests.api.test_set_aside import refuse_its_entry
from tests.making import use_cases

SAID = {"size": "L", "note": '门口 "3"', "gift": {"to": ["ben", None]}}


async def shown(node: Node, order: dict[str, Any], user: str = "ann") -> Any:
    return (await node.http.get(f"/v1/orders/{order['order_id']}", headers=buyer(user))).json()


async def test_it_is_shown_to_its_buyer_and_to_operators(node: Node) -> None:
    sale = await node.create(limit_per_buyer=2)
    order = (await node.buy(sale, "ann", metadata=SAID)).json()
    plain = (await node.buy(sale, "ann")).json()
    await node.work()
    assert (await shown(node, order))["metadata"] == SAID
    assert "metadata" not in await shown(node, plain)
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    assert [each.get("metadata") for each in listed] == [None, SAID]
    found = await node.http.get("/v1/admin/orders", params={"user": "ann"}, headers=OPERATOR)
    assert [each["order"].get("metadata") for each in found.json()["orders"]] == [None, SAID]


async def test_exports_have_the_metadata(node: Node) -> None:
    sale = await node.create(limit_per_buyer=2)
    await node.buy(sale, "ann", metadata=SAID)
    await node.buy(sale, "ann")
    await node.work()
    table = (await node.http.get("/v1/admin/orders.csv", headers=OPERATOR)).text
    cells = [row["metadata"] for row in csv.DictReader(io.StringIO(table))]
    assert [json.loads(cell) if cell else None for cell in cells] == [None, SAID]
    lines = (await node.http.get("/v1/admin/orders.jsonl", headers=OPERATOR)).text.splitlines()
    assert [json.loads(line).get("metadata") for line in lines] == [None, SAID]


async def test_the_first_of_a_key_stays(node: Node) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann", key="k", metadata={"a": 1})).json()
    await node.work()
    again = await node.buy(sale, "ann", key="k", metadata={"a": 2})
    assert (again.status_code, again.json()["order_id"]) == (202, order["order_id"])
    assert (await shown(node, order))["metadata"] == {"a": 1}


@pytest.mark.parametrize("wrong", [[], "text", 7, {"a": "x" * 4090}])
async def test_what_is_wrong_is_named_and_buys_nothing(node: Node, wrong: object) -> None:
    sale = await node.create()
    refused = await node.buy(sale, "ann", metadata=wrong)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "metadata")
    assert (await node.buy(sale, "ann", metadata={"a": "x" * 4087})).status_code == 202


async def test_metadata_survive_a_rebuild(
    node: Node, engine: Engine, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round is lost, and the queue has what no worker has written."""
    monkeypatch.setattr("seckill.engine.rounds.rebuild.DRAIN_S_MAX", 0)  # no worker comes
    sale = await node.create()
    order = (await node.buy(sale, "ann", metadata=SAID)).json()
    (known,) = await engine.ledger.sales()
    client = connect(redis_url)
    await client.delete(keys.round_(known.round.ref))
    await client.aclose()
    await rebuild(use_cases(engine).keeper)
    assert (await shown(node, order))["metadata"] == SAID
    await node.work()
    assert (await shown(node, order))["state"] == "unpaid"


async def test_it_survives_being_set_aside_and_given_up(node: Node, engine: Engine, redis_url: str) -> None:
    sale = await node.create(units=5)
    order = (await node.buy(sale, "ann", metadata=SAID)).json()
    await refuse_its_entry(node, redis_url)
    for letter in await engine.ledger.letters(LetterState.RETRYING, 10):
        await DeadLetterDesk(engine.ledger, Alarm(""), ())._retry(letter)
    ended = await shown(node, order)
    assert (ended["state"], ended["metadata"]) == ("failed", SAID)
