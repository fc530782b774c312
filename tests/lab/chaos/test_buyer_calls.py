"""How chaos's buyers call the API."""

import asyncio
from urllib.parse import urlsplit

import pytest

from seckill.lab.chaos.buyer_calls import Caller, Unanswered
from seckill.lab.servers.ports import free_port
from tests.patience import PATIENCE_S
from tests.public.serving import Scripted, reply, scripted


def port_of(server: Scripted) -> int:
    port = urlsplit(server.url).port
    assert port is not None
    return port


async def test_a_refusal_is_an_answer_and_a_dead_node_is_none() -> None:
    async with scripted(reply(409, b'{"code":"sold_out"}')) as alive:
        caller = Caller([free_port(), port_of(alive)], 0)
        with pytest.raises(Unanswered):
            await caller.call("POST", "/v1/sales/x/orders", "token", {"quantity": 1}, key="k1")
        answer = await caller.call("POST", "/v1/sales/x/orders", "token", {"quantity": 1}, key="k1")
        await caller.close()
    assert answer == (409, {"code": "sold_out"}), "of the next node"
    (asked,) = alive.asked
    assert b"Idempotency-Key: k1\r\n" in asked
    assert asked.endswith(b'{"quantity":1}')


async def test_a_buyer_who_hangs_up_has_asked() -> None:
    async with scripted(reply(202, b"{}")) as server:
        with pytest.raises(Unanswered):
            await Caller([port_of(server)], 0).call("POST", "/v1/sales/x/orders", "token", {}, listen=False)
        async with asyncio.timeout(PATIENCE_S):
            while not server.asked:
                await asyncio.sleep(0.01)
