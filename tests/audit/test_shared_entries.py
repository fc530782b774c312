"""Orders that share an entry of the stream are audited one by one."""

import pytest

from seckill.backends.redis import keys
from seckill.domain.admission import Claim
from seckill.ports.queue_entry import read_together, write_together
from tests.audit.conftest import World

USERS = ("gil", "hal", "ida")


async def queue_together(world: World) -> str:
    """Three orders in one entry. Its id."""
    ref = await world.ref()
    await world.redis.hset(keys.queue(ref.lane), "form", 2)
    await world.engine.gate.admit(ref, [Claim(user, 1, f"of-{user}") for user in USERS])
    (entry_id,) = [
        entry.decode() for entry, fields in await world.redis.xrange(await world.stream_key()) if b"orders" in fields
    ]
    return str(entry_id)


async def test_they_are_sound_and_counted(busy: World) -> None:
    await queue_together(busy)
    assert await busy.found() == {}
    report = await busy.auditor.read(full=True)
    (units,) = report.units
    assert units.queued == 1 + len(USERS)
    assert "4 entries" in {result.figures for result in report.results}
    await busy.node.work()
    assert await busy.found() == {}


@pytest.mark.parametrize("change", ["gone", "one is another's"])
async def test_what_is_wrong_with_one_is_found(busy: World, change: str) -> None:
    entry_id, key, lane = await queue_together(busy), await busy.stream_key(), (await busy.ref()).lane
    ((_, fields),) = await busy.redis.xrange(key, entry_id, entry_id)
    await busy.redis.xdel(key, entry_id)
    if change != "gone":
        admissions = [each.admission for each in read_together(lane, entry_id, fields[b"orders"]) if each.admission]
        forged = write_together(admissions).replace(b"hal", b"eve")
        await busy.redis.xadd(key, {"orders": forged})
    found = await busy.found()
    assert set(found) >= ({"lost"} if change == "gone" else {"queue"})
