"""Buyers as shops call them, from the token to the ledger and back."""

import time

import jwt
import pytest

from tests.api.conftest import JWT_SECRET, OPERATOR, Node


def bearer(sub: object) -> dict[str, str]:
    """Makes a token as a shop's service does, without our checks."""
    now = int(time.time())
    token = jwt.encode({"sub": sub, "iat": now, "exp": now + 600}, JWT_SECRET.reveal(), "HS256")
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("user", ["+8613812345678", "张三", "00012", "Ann Lee", "{x}", 'a"b\\c'])
async def test_a_shops_id_buys_once_and_finds_its_order(node: Node, user: str) -> None:
    sale = await node.create()
    path = f"/v1/sales/{sale['id']}/orders"
    order = (await node.http.post(path, headers=bearer(user))).json()
    await node.work()
    again = await node.http.post(path, headers=bearer(user))
    assert (again.status_code, again.json()["order_ids"]) == (409, [order["order_id"]])
    [mine] = (await node.http.get("/v1/orders", headers=bearer(user))).json()["orders"]
    assert (mine["order_id"], mine["state"]) == (order["order_id"], "unpaid")
    found = await node.http.get("/v1/admin/orders", params={"user": user}, headers=OPERATOR)
    assert [each["user"] for each in found.json()["orders"]] == [user]


async def test_two_encodings_of_one_name_have_one_limit(node: Node) -> None:
    sale = await node.create()
    path = f"/v1/sales/{sale['id']}/orders"
    assert (await node.http.post(path, headers=bearer("Jose\u0301"))).status_code == 202
    assert (await node.http.post(path, headers=bearer("Jos\u00e9"))).json()["code"] == "limit_reached"
    await node.work()
    found = await node.http.get("/v1/admin/orders", params={"user": "Jose\u0301"}, headers=OPERATOR)
    assert [each["user"] for each in found.json()["orders"]] == ["Jos\u00e9"]


@pytest.mark.parametrize("sub", [" 7", "\uff17", "7\r\nX: y", "", 7])
async def test_a_bad_id_is_told_what_is_wrong(node: Node, sub: object) -> None:
    sale = await node.create()
    refused = await node.http.post(f"/v1/sales/{sale['id']}/orders", headers=bearer(sub))
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    assert refused.json()["detail"].startswith("The token's sub ")
