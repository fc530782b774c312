"""A crowd that does the same to a line at the same moment is a few queries, not some for each."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from seckill.backends.sql import SqlLedger
from seckill.domain.sale import Sale
from seckill.engine.line import drawn_list
from seckill.errors import LedgerUnavailable
from tests.api.conftest import Node, buyer
from tests.api.test_line import Keeping, begin, join, joined, later, look, own
from tests.api.test_line import keeper as keeper  # a fixture

CROWD = 120


@contextmanager
def statements(ledger: Any) -> Iterator[list[str]]:
    """Those that the ledger is asked meanwhile."""
    assert isinstance(ledger, SqlLedger)
    asked: list[str] = []

    def note(_c: Any, _u: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    engines = {ledger.database.writers.sync_engine, ledger.database.readers.sync_engine}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


async def test_all_who_want_to_wait_when_it_is_sold_out_open_the_line_once(
    node: Node, keeper: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = await node.create(units=1, waiting_list=True)
    assert (await node.buy(sale, "winner")).status_code == 202
    await node.work()
    opened, lines = 0, node.api.context.line.desk._lines
    open_line = lines.open_line

    async def counting(sale_id: int, round_id: int) -> Sale | None:
        nonlocal opened
        opened += 1
        return await open_line(sale_id, round_id)

    monkeypatch.setattr(lines, "open_line", counting)
    answers = await asyncio.gather(*(join(node, sale, f"b{number}") for number in range(CROWD)))
    assert {answer.status_code for answer in answers} == {201}
    assert sorted(answer.json()["place"] for answer in answers) == list(range(1, CROWD + 1))
    assert opened == 1, "each opened it anew, under the lock of the whole catalogue"


async def test_all_who_look_when_places_are_drawn_are_a_few_queries(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=1, order="draw", **later())
    users = [f"b{number}" for number in range(CROWD)]
    entries = dict(zip(users, await asyncio.gather(*(joined(node, sale, user) for user in users)), strict=True))
    await begin(node, sale)
    await keeper.draw()
    await node.refresh()
    drawn = {user: await look(node, entries[user], user) for user in users}
    [gone] = [user for user, entry in drawn.items() if entry["place"] == 3]
    left = await node.http.delete(f"/v1/entries/{entries[gone]['entry_id']}", headers=buyer(gone))
    assert left.json()["state"] == "left"
    with statements(node.engine.ledger) as asked:
        seen = await asyncio.gather(*(look(node, entries[user], user) for user in users))
    places = {entry["place"]: entry["ahead"] for entry in seen if entry["state"] == "waiting"}
    assert places == {place: place - (1 if place < 3 else 2) for place in range(1, CROWD + 1) if place != 3}
    assert len(asked) < CROWD, "some for each"


async def test_all_who_ask_for_their_own_entry_are_a_few_queries_and_each_sees_only_that(
    node: Node, keeper: Keeping
) -> None:
    """When all buyers open a page at once, most of them have not joined."""
    sale, other = await node.create(units=1, order="draw", **later()), await node.create(units=1, order="arrival")
    users = [f"b{number}" for number in range(CROWD)]
    entries = dict(
        zip(users[::3], await asyncio.gather(*(joined(node, sale, user) for user in users[::3])), strict=True)
    )
    elsewhere = await joined(node, other, "b1")
    await asyncio.gather(own(node, sale, "b0"), own(node, other, "b0"))
    with statements(node.engine.ledger) as asked:
        found = await asyncio.gather(*(own(node, sale, user) for user in users), own(node, other, "b1"))
    assert len(asked) < CROWD / 2, "some for each"
    ids = [[entry["entry_id"] for entry in each] for each in found]
    assert ids[:-1] == [[entries[user]["entry_id"]] if user in entries else [] for user in users]
    assert ids[-1] == [elsewhere["entry_id"]]
    with pytest.MonkeyPatch.context() as patch:

        async def away(_: Any) -> None:
            raise LedgerUnavailable("away")

        patch.setattr(node.api.context.line.desk._lines, "standings_of", away)
        refused = await node.http.get(f"/v1/sales/{sale['id']}/entries", headers=buyer("b0"))
        assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")


async def test_all_who_watch_how_far_the_line_has_come_are_one_look(node: Node, keeper: Keeping) -> None:
    """A hundred thousand pages ask every few seconds: all get the same answer, which may be cached for a second."""
    sale = await node.create(units=1, order="arrival")
    for user in ("ann", "bob", "cid"):
        await joined(node, sale, user)
    await keeper.draw()
    await keeper.serve()
    address = f"/v1/sales/{sale['id']}/line"
    await asyncio.sleep(1.0)  # figures are a second old at most
    with statements(node.engine.ledger) as one:
        first = (await node.http.get(address)).json()
    assert (first["waiting"], first["served_up_to"], first["unpaid"]) == (2, 1, 1)
    await asyncio.sleep(1.0)
    began_s = asyncio.get_running_loop().time()
    with statements(node.engine.ledger) as asked:
        answers = await asyncio.gather(*(node.http.get(address) for _ in range(CROWD)))
    seconds = asyncio.get_running_loop().time() - began_s
    assert all(answer.json() == first for answer in answers)
    assert {answer.headers["cache-control"] for answer in answers} == {"public, max-age=1"}
    assert 0 < len(asked) <= (1 + seconds) * len(one), "one look, and one more for each second that went by meanwhile"


async def test_all_who_join_once_more_are_a_few_queries(node: Node, keeper: Keeping) -> None:
    """A page repeats what was not answered in time, and each who has an entry was counted for under the line's lock."""
    sale = await node.create(units=1, order="arrival")
    users = [f"b{number}" for number in range(CROWD)]
    entries = await asyncio.gather(*(joined(node, sale, user) for user in users))
    await keeper.draw()
    with statements(node.engine.ledger) as asked:
        again = await asyncio.gather(*(join(node, sale, user) for user in users))
    assert {answer.status_code for answer in again} == {200}
    assert [answer.json()["place"] for answer in again] == [entry["place"] for entry in entries]
    assert [answer.json()["ahead"] for answer in again] == [entry["place"] - 1 for entry in entries]
    assert len(asked) < CROWD, "some for each"


async def test_who_looks_while_the_ledger_is_away_is_told_so_and_finds_the_entry_afterwards(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = await node.create(units=1, order="arrival")
    entry = await joined(node, sale, "ann")

    async def broken(_: Any) -> None:
        raise RuntimeError("an error of ours")

    with monkeypatch.context() as patch:
        patch.setattr(node.api.context.line.desk._lines, "standings", broken)
        away = [node.http.get(f"/v1/entries/{entry['entry_id']}", headers=buyer(user)) for user in ("ann", "bob")]
        assert [(each.status_code, each.json()["code"]) for each in await asyncio.gather(*away)] == [
            (503, "not_ready")
        ] * 2
    assert (await look(node, entry, "ann"))["place"] == 1


async def test_whoever_checks_a_draw_reads_what_was_read_before(
    node: Node, keeper: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is public, and each page of it was thousands of rows for any client that asked, with a page of any
    size."""
    monkeypatch.setattr(drawn_list, "PIECE", 50)
    sale = await node.create(units=1, order="draw", **later())
    users = [f"b{number}" for number in range(CROWD)]
    entries = await asyncio.gather(*(joined(node, sale, user) for user in users))
    await begin(node, sale)
    address = f"/v1/sales/{sale['id']}/draw/entries"
    assert (await node.http.get(address)).json()["code"] == "not_closed"
    await keeper.draw()
    await joined(node, sale, "late")
    await asyncio.sleep(1.0)  # figures are a second old at most
    placed = {}
    for user, entry in zip(users, entries, strict=True):
        placed[(await look(node, entry, user))["place"]] = entry["entry_id"]
    whole = [placed[place] for place in range(1, CROWD + 1)]
    assert (await node.http.get(address)).json() == {"entries": whole, "drawn": True, "next": None}
    with statements(node.engine.ledger) as asked:
        for after, limit in [(0, 50), (0, 51), (49, 2), (50, 50), (17, 9999), (119, 1), (120, 9), (10**12, 9)]:
            page = (await node.http.get(address, params={"after": str(after), "limit": str(limit)})).json()
            assert page["entries"] == whole[after : after + limit]
            assert page["next"] == (after + limit if after + limit < CROWD else None)
    assert [each for each in asked if "line_entries.place >" in each and "ORDER BY" in each] == []
