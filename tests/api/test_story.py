"""The public story of how a round went."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from seckill.engine.orders.releases import ReleaseDesk
from seckill.operations.presence import present
from tests.api.conftest import OPERATOR, Node, buyer
from tests.api.test_line import Keeping, begin, joined, keeper, later  # noqa: F401 (a fixture)


async def story(node: Node, sale: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await node.http.get(f"/v1/sales/{sale['id']}/story")).json()
    return found


async def test_it_tells_how_it_went_and_nobodys_name(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seckill.engine.rounds.story.FRESH_S", 0.0)
    sale = await node.create(units=3, price_cents=100)
    assert (await story(node, sale))["code"] == "not_over", "how much is sold is nobody's business yet"
    first = (await node.buy(sale, "ann-secret")).json()
    for user in ("bob-secret", "cid-secret"):
        await node.buy(sale, user)
    await node.work()
    assert (await node.buy(sale, "dan-secret")).json()["code"] == "sold_out"
    await node.refresh()
    figures = node.api.context.desk.figures
    async with present(node.engine.board, "api", lambda: {"refused": figures.refused()}):
        while (told := await story(node, sale)).get("refused") is None:
            await asyncio.sleep(0.05)
    assert told["refused"] == {"sold_out": 1}
    assert (told["units"], told["orders"], told["units_given"], told["returned"], told["resold"]) == (3, 3, 3, 0, 0)
    assert told["may_return"] == 3
    assert told["draw"] is None
    assert told["curve"][-1] == 3
    assert told["curve"] == sorted(told["curve"])
    assert told["first_unit_at"] <= told["last_unit_at"] == told["gone_at"]
    begins_at, gone_at = (datetime.fromisoformat(told[name]) for name in ("begins_at", "gone_at"))
    assert told["seconds_to_sell_out"] == pytest.approx((gone_at - begins_at).total_seconds(), abs=0.002)
    await node.http.post(f"/v1/orders/{first['order_id']}/cancel", headers=buyer("ann-secret"))
    await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).pass_on()
    await node.refresh()
    assert (await node.buy(sale, "dan-secret")).status_code == 202
    await node.work()
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    told = await story(node, sale)
    assert (told["orders"], told["units_given"], told["returned"], told["resold"]) == (4, 4, 1, 1)
    assert "secret" not in str(told)


async def test_it_says_what_is_not_known(node: Node) -> None:
    sale = await node.create(units=3)
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    told = await story(node, sale)
    for name in ("first_unit_at", "last_unit_at", "gone_at", "seconds_to_sell_out", "may_return", "refused", "draw"):
        assert told[name] is None, name
    assert told["curve"] == []
    answer = await node.http.get(f"/v1/sales/{sale['id']}/story")
    assert "max-age" in answer.headers["cache-control"]
    again = await node.http.get(f"/v1/sales/{sale['id']}/story", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert (await node.http.get("/v1/sales/nope/story")).json()["code"] == "unknown_sale"
    assert (await node.http.get(f"/v1/sales/{sale['id']}/story?round=x")).status_code == 422


async def test_it_has_the_proof_of_a_draw(node: Node, keeper: Keeping) -> None:  # noqa: F811
    sale = await node.create(units=1, order="draw", **later())
    for user in ("ann", "bob"):
        await joined(node, sale, user)
    await begin(node, sale)
    await keeper.draw()
    await keeper.serve()
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    await asyncio.sleep(1.0)  # figures are a second old at most
    told = await story(node, sale)
    assert told["draw"] == (await node.http.get(f"/v1/sales/{sale['id']}/draw")).json()
    assert told["draw"]["seed"] is not None
