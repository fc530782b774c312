"""A buyer who comes too late is told when that was decided, when the last unit went, and how many may come back."""

from datetime import datetime
from typing import Any

import httpx2
import pytest

from seckill.engine.orders.releases import ReleaseDesk
from seckill.web.claims.claim_protocol import ClaimingProtocol
from tests.api.conftest import Node, Served, buyer
from tests.api.test_short_way import connected, read, request


async def until_flagged(node: Node, sale: dict[str, Any]) -> None:
    """The node refuses by itself."""
    await node.buy(sale, "a-loser")
    while int(sale["round"]) not in node.api.context.desk.sold_out.standing:
        await node.refresh()
        await node.buy(sale, "a-loser")


def told(problem: dict[str, Any]) -> tuple[datetime, datetime | None, int | None]:
    assert problem["code"] == "sold_out"
    sold_out_at = problem["sold_out_at"]
    return (
        datetime.fromisoformat(problem["decided_at"]),
        None if sold_out_at is None else datetime.fromisoformat(sold_out_at),
        problem["may_return"],
    )


async def pay(node: Node, won: httpx2.Response, user: str) -> None:
    path = f"/v1/orders/{won.json()['order_id']}/pay"
    assert (await node.http.post(path, headers=buyer(user))).status_code == 200


@pytest.mark.parametrize("lanes", [1, 3])
async def test_a_refusal_tells_what_is_known(node: Node, lanes: int) -> None:
    sale = await node.create(units=3, lanes=lanes)
    won = [await node.buy(sale, user) for user in ("ann", "bob", "cid")]
    assert [answer.status_code for answer in won] == [202] * 3
    await until_flagged(node, sale)
    decided_at, sold_out_at, may_return = told((await node.buy(sale, "eve")).json())
    assert sold_out_at is not None
    assert datetime.fromisoformat(sale["server_time"]) <= sold_out_at <= decided_at
    assert may_return is None, "not counted yet"
    unpaid = node.api._unpaid_units
    await unpaid.count()
    assert told((await node.buy(sale, "eve")).json())[2] == 3
    await node.work()
    await pay(node, won[0], "ann")
    await unpaid.count()
    again_at, same, may_return = told((await node.buy(sale, "eve")).json())
    assert (same, may_return) == (sold_out_at, 2)
    assert again_at >= decided_at


@pytest.mark.parametrize("is_flagged", [False, True])
async def test_only_the_decision_about_an_item_is_known(node: Node, is_flagged: bool) -> None:
    """A buyer who waits for another size is not told of units that would not help."""
    items = [{"title": "S", "units": 1}, {"title": "L", "units": 9}]
    sale = await node.create(units=10, items=items)
    small = sale["items"][0]["item_id"]
    assert (await node.buy(sale, "ann", item_id=small)).status_code == 202
    flags = node.api.context.desk.sold_out
    while is_flagged and not flags.standing:
        await node.buy(sale, "a-loser", item_id=small)
        await node.refresh()
    await node.api._unpaid_units.count()
    refused = (await node.buy(sale, "eve", item_id=small)).json()
    decided_at, sold_out_at, may_return = told(refused)
    assert decided_at >= datetime.fromisoformat(sale["server_time"])
    assert (refused["item_id"], sold_out_at, may_return) == (small, None, None)


async def test_a_refusal_says_what_is_left_to_do(node: Node) -> None:
    async def advice(sale: dict[str, Any], **asked: Any) -> tuple[str, str | None]:
        refused = (await node.buy(sale, "eve", **asked)).json()
        assert refused["code"] == "sold_out"
        return refused["what_now"], refused["next_round_at"]

    once = await node.create(units=1)
    listed = await node.create(units=1, waiting_list=True)
    daily = await node.create(units=1, repeat="daily")
    sizes = [{"title": "S", "units": 1}, {"title": "L", "units": 9}]
    sized = await node.create(units=10, waiting_list=True, items=sizes)
    small = sized["items"][0]["item_id"]
    won = [await node.buy(sale, "ann") for sale in (once, listed, daily)]
    await node.buy(sized, "ann", item_id=small)
    assert await advice(once) == ("try_again", None)
    assert await advice(listed) == ("join_the_line", None)
    assert await advice(daily) == ("try_again", daily["next_rounds"][0])
    assert await advice(sized, item_id=small) == ("try_again", None), "joining would be refused: there are others left"
    await node.work()
    for order in won:
        await pay(node, order, "ann")
    await node.api._unpaid_units.count()
    assert await advice(once) == ("nothing", None)
    assert await advice(listed) == ("nothing", None)
    assert await advice(daily) == ("next_round", daily["next_rounds"][0])


async def test_what_the_gate_itself_refuses_says_so_too(node: Node) -> None:
    """The gate refuses before the node knows that the round is sold out."""
    sale = await node.create(units=1)
    await node.buy(sale, "ann")
    decided_at, sold_out_at, may_return = told((await node.buy(sale, "eve")).json())
    assert decided_at >= datetime.fromisoformat(sale["server_time"])
    assert (sold_out_at, may_return) == (None, None), "what is not known is not made up"


async def test_from_the_bytes_and_through_the_framework_it_is_the_same(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = served.node
    sale = await node.create(units=1)
    await node.buy(sale, "ann")
    await until_flagged(node, sale)
    await node.api._unpaid_units.count()

    async def refused() -> tuple[int, dict[str, str], Any]:
        async with connected(served) as (reader, writer):
            writer.write(request(sale, "eve"))
            return await read(reader)

    quick = await refused()
    monkeypatch.setattr(ClaimingProtocol, "is_quiet", lambda self: False)
    slow = await refused()
    for status, headers, problem in (quick, slow):
        assert (status, headers["content-type"]) == (409, "application/problem+json")
        assert problem["may_return"] == 1
    assert quick[2] | {"decided_at": ""} == slow[2] | {"decided_at": ""}


async def test_when_units_come_back_and_go_again_the_last_one_counts(node: Node) -> None:
    sale = await node.create(units=1, cool_down_s=0)
    first = await node.buy(sale, "ann")
    await until_flagged(node, sale)
    _, sold_out_at, _ = told((await node.buy(sale, "eve")).json())
    await node.work()
    path = f"/v1/orders/{first.json()['order_id']}/cancel"
    assert (await node.http.post(path, headers=buyer("ann"))).status_code == 200
    await give_back(node)
    assert (await node.buy(sale, "bob")).status_code == 202
    await until_flagged(node, sale)
    _, again_at, _ = told((await node.buy(sale, "eve")).json())
    assert sold_out_at is not None
    assert again_at is not None
    assert again_at > sold_out_at


async def give_back(node: Node) -> None:
    await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).pass_on()
    await node.refresh()
