"""A user whose rights are changed while it is in use: Lua does not roll back what a script has written before the
command that it may not run any more."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate, _keys
from seckill.domain.admission import Claim
from seckill.domain.item import ItemUnits
from seckill.errors import GateUnavailable
from seckill.ports.gate import Release
from tests.backends.gate.conftest import held_by, open_round
from tests.fixtures.backends import RedisBackend
from tests.making import make_round
from tests.patience import PATIENCE_S

USER = "mortal"
# Every command that one of these scripts writes with, or did once.
RIGHTS = ["hset", "hincrby", "hdel", "xadd"]


@pytest.fixture
async def user_gate(redis_backend: RedisBackend) -> AsyncIterator[RedisGate]:
    admin: Any = redis_backend.client
    await admin.execute_command("ACL", "SETUSER", USER, "on", "nopass", "~*", "&*", "+@all")
    url = redis_backend.url.replace("unix://", f"unix://{USER}:any@")
    gate = RedisGate(url, timeout_s=PATIENCE_S, backlog_max=1000)
    yield gate
    await gate.close()
    await admin.execute_command("ACL", "DELUSER", USER)


@pytest.mark.parametrize("items", [(), (ItemUnits(1, 3), ItemUnits(2, 2))], ids=["plain", "items"])
@pytest.mark.parametrize("what", ["claim", "release", "change"])
@pytest.mark.parametrize("right", RIGHTS)
async def test_a_right_that_is_taken_away_leaves_nothing_by_halves(
    user_gate: RedisGate, client: Any, right: str, what: str, items: tuple[ItemUnits, ...]
) -> None:
    gate = user_gate
    round_ = await open_round(gate, make_round(total=5, items=items))
    item = items[0].id if items else 0
    await gate.admit(round_.ref, [Claim("ann", 1, "k1", item=item)])
    (order,) = await held_by(gate, round_.ref, "ann")
    more = tuple(each._replace(total=each.total + 2) for each in items)

    async def everything() -> tuple[object, ...]:
        """Reads the stream instead of dumping it: in a dump, an entry that was taken back leaves its mark."""
        of_round = [await client.hgetall(key) for key in (*_keys(round_.ref), keys.days(3), keys.queue(3))]
        return await client.xrange(keys.orders(3)), *of_round

    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "claim": lambda: gate.admit(round_.ref, [Claim("bob", 1, "k2", item=item), Claim("cat", 1, item=item)]),
        "release": lambda: gate.release(round_.ref, [Release(order.number, "ann", round_.epoch, "k1")]),
        "change": lambda: gate.update_round(replace(round_, total=9, items=more, revision=round_.revision + 1)),
    }
    before = await everything()
    await client.execute_command("ACL", "SETUSER", USER, f"-{right}")
    try:
        await calls[what]()
    except GateUnavailable:
        assert await everything() == before, "told that it was not done, and it was in part"
    await client.execute_command("ACL", "SETUSER", USER, f"+{right}")
    await calls[what]()
    view = await gate.inspect(round_.ref)
    assert view is not None
    wanted = {"claim": (5, 3, 0, 2), "release": (5, 1, 1, 5), "change": (9, 1, 0, 8)}[what]
    assert (view.total, view.admitted, view.released, view.available) == wanted
