"""The holdings of one buyer in many rounds at once: every buyer who opens the list of their orders asks for them."""

from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import HELD_MAX, RedisGate
from seckill.backends.redis.server_calls import Line
from seckill.domain.admission import Claim
from seckill.domain.sale import Round
from tests.backends.gate.conftest import open_round
from tests.making import make_round

ANN = [Claim("ann", 1)]


class Sent:
    """Commands that go to the server, in each trip there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trips: list[int] = []
        send = Line.send

        async def counted(line: Line, commands: Any) -> list[Any]:
            self.trips.append(len(commands))
            return await send(line, commands)

        monkeypatch.setattr(Line, "send", counted)


async def rounds(gate: RedisGate, count: int) -> list[Round]:
    return [await open_round(gate, make_round(id=id_, lane=id_ % 4)) for id_ in range(1, count + 1)]


async def test_many_sales_are_one_question(redis_gate: RedisGate, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are on, up to what would hold up those who press; on one server, whatever their lanes."""
    made = await rounds(redis_gate, HELD_MAX + 1)
    mine = [(await redis_gate.admit(made[place].ref, ANN)).answers[0].holdings for place in (0, HELD_MAX)]
    await redis_gate.admit(made[1].ref, [Claim("bob", 1)])
    refs = [round_.ref for round_ in made]
    await redis_gate.holdings(refs[:1], "ann")  # the server knows the script from now on
    for count, trips in ((2, 1), (HELD_MAX, 1), (HELD_MAX + 1, 2)):
        sent = Sent(monkeypatch)
        found = await redis_gate.holdings(refs[:count], "ann")
        assert sent.trips == [1] * trips, "one command each"
        assert found == [mine[0], *[()] * (count - 2), mine[1] if count > HELD_MAX else ()]
        monkeypatch.undo()
    assert await redis_gate.holdings([], "ann") == []


@pytest.mark.parametrize("damage", ["round", "buyers", "past", "a buyer", "a number"])
async def test_nobody_can_say_that_a_buyer_has_nothing_in_a_round_that_is_not_whole(
    redis_gate: RedisGate, client: Any, damage: str
) -> None:
    """Other rounds in the same question are not concerned, and a record that is there tells all."""
    broken, sound = await rounds(redis_gate, 2)
    for each in (broken, sound):
        await redis_gate.admit(each.ref, [*ANN, Claim("bob", 1)])
    refs = [broken.ref, sound.ref]
    assert await redis_gate.holdings(refs, "cid") == [(), ()]
    names = {"round": keys.round_(broken.ref), "buyers": keys.buyers(broken.ref), "past": keys.past(broken.ref)}
    if damage == "a buyer":
        await client.hdel(names["buyers"], "bob")
    elif damage == "a number":
        await client.hset(names["round"], "admitted", "many")
    else:
        await client.delete(names[damage])
        await client.set(names[damage], "something else")
    assert await redis_gate.holdings(refs, "cid") == [None, ()]
    first, second = await redis_gate.holdings(refs, "ann")
    assert len(second or ()) == 1
    assert first is None if damage == "buyers" else len(first or ()) == 1
