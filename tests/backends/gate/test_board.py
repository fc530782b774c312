"""Where processes put up their reports."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from seckill.backends.memory.board import MemoryBoard
from seckill.backends.memory.store import MemoryStore
from seckill.backends.redis import keys
from seckill.backends.redis.board import STAYS_MS, RedisBoard
from seckill.errors import GateUnavailable
from seckill.operations.presence import identify, present
from seckill.ports.board import Board, LaneBacklog
from tests.fixtures.backends import RedisBackend


@pytest.fixture
async def board(redis_backend: RedisBackend) -> AsyncIterator[RedisBoard]:
    board = RedisBoard(redis_backend.url)
    yield board
    await board.close()


async def test_a_report_is_seen_by_all_and_renewed_in_its_place(board: RedisBoard) -> None:
    me = identify("api")
    await board.post(me)
    await board.post(msgspec.structs.replace(me, claims=7, refused={"3": {"sold_out": 2}}, answers=[1, 2]))
    now_ms, (seen,) = await board.reports()
    assert (seen.report.node, seen.report.claims, seen.report.refused) == (me.node, 7, {"3": {"sold_out": 2}})
    assert 0 <= now_ms - seen.at_ms < 60_000
    await board.remove(me.node)
    assert (await board.reports())[1] == []


async def test_who_is_silent_for_too_long_is_taken_down_by_the_next(board: RedisBoard, client: Any) -> None:
    gone, here = identify("worker"), identify("worker")
    await board.post(gone)
    now_ms, _ = await board.reports()
    await client.zadd(keys.NODES_SEEN, {gone.node: now_ms - STAYS_MS - 1000})
    assert len((await board.reports())[1]) == 1, "still there, and known to be silent"
    await board.post(here)
    assert [seen.report.node for seen in (await board.reports())[1]] == [here.node]
    assert await client.hlen(keys.NODES) == 1, "nothing is left of it"


async def test_a_report_that_cannot_be_read_hides_no_other(board: RedisBoard, client: Any) -> None:
    me = identify("keeper")
    await board.post(me)
    await client.zadd(keys.NODES_SEEN, {"other": 1})
    await client.hset(keys.NODES, "other", '{"role": 7}')
    assert [seen.report.node for seen in (await board.reports())[1]] == [me.node]


@pytest.mark.parametrize("key", [keys.NODES_SEEN, keys.NODES])
async def test_something_else_in_its_place_goes_with_the_next_report(board: RedisBoard, client: Any, key: str) -> None:
    me = identify("api")
    await board.post(me)
    await client.delete(key)
    await client.set(key, "x")
    with pytest.raises(GateUnavailable, match="WRONGTYPE"):
        await board.reports()
    await board.post(me)
    assert [seen.report.node for seen in (await board.reports())[1]] == [me.node]


async def test_how_long_the_oldest_entry_has_waited(board: RedisBoard, client: Any) -> None:
    await client.xadd(keys.orders(2), {"order": "a"}, id="1000-0")
    await client.xadd(keys.orders(2), {"order": "b"}, id="2000-0")
    assert await board.waiting({1, 2}) == {1: LaneBacklog(0, None), 2: LaneBacklog(2, 1000)}
    assert await board.waiting(set()) == {}


async def test_the_board_in_memory_is_a_board_too() -> None:
    now_ms = 1_000_000
    store = MemoryStore(lambda: now_ms)
    board: Board = MemoryBoard(store)
    async with present(board, "worker", lambda: {"recorded": 3}):
        while not (found := (await board.reports())[1]):
            await asyncio.sleep(0)
        assert (found[0].report.role, found[0].report.recorded, found[0].at_ms) == ("worker", 3, now_ms)
    assert (await MemoryBoard(store).reports())[1] == []
    store.add_entries(2, [b"a", b"b"])
    assert await board.waiting({1, 2}) == {1: LaneBacklog(0, None), 2: LaneBacklog(2, now_ms)}


async def test_presence_ends_in_good_order(board: RedisBoard) -> None:
    async with present(board, "worker", lambda: {"recorded": 3}):
        while not (found := (await board.reports())[1]):
            pass
        assert (found[0].report.role, found[0].report.recorded) == ("worker", 3)
    assert (await board.reports())[1] == []


async def test_a_server_that_is_away_is_one_error_of_ours() -> None:
    board = RedisBoard("redis://127.0.0.1:1/0")
    with pytest.raises(GateUnavailable):
        await board.post(identify("api"))
    async with present(board, "api"):
        pass  # and disturbs no other process
    await board.close()
