"""Joining a line gets the same answer whichever way it takes: from its bytes, or as an ordinary request."""

import asyncio
from typing import Any

import pytest

from seckill.engine.door.address_rate import AddressRate
from seckill.errors import LedgerUnavailable
from seckill.settings import Settings
from seckill.web.claims.claim_protocol import ClaimingProtocol
from seckill.web.line.line_join import JoinRoute
from tests.api.conftest import OPERATOR, Node, Served, buyer, token_with
from tests.api.test_line import Keeping, later, look
from tests.api.test_short_way import connected, read
from tests.api.test_two_ways import SAME, Way, answers
from tests.patience import PATIENCE_S

TOLD = ("entry_id", "sale_id", "round", "state", "quantity", "place", "ahead", "of", "units", "chance", "joined_at")


@pytest.fixture(params=["bytes", "framework"])
async def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    way: Way = request.param
    if way == "framework":
        monkeypatch.setattr(ClaimingProtocol, "is_quiet", lambda self: False)
    return way


@pytest.fixture
async def begun(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Notes for each join that came as bytes whether it stayed on the quick way."""
    found: list[bool] = []
    begin = JoinRoute.begin

    def noted(self: JoinRoute, *join: Any) -> bool:
        found.append(begin(self, *join))
        return found[-1]

    monkeypatch.setattr(JoinRoute, "begin", noted)
    return found


def join(sale: dict[str, Any], user: str, body: bytes = b"{}", **claims: Any) -> bytes:
    lines = [f"POST /v1/sales/{sale['id']}/entries HTTP/1.1", "Host: seckill", f"Content-Length: {len(body)}"]
    lines.append(f"Authorization: Bearer {token_with(user, **claims)}" if claims else f"Authorization: {bearer(user)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def bearer(user: str) -> str:
    return buyer(user)["Authorization"]


async def test_what_the_token_says_of_somebody_counts_when_it_is_their_turn(
    served: Served, way: Way, begun: list[bool], settings: Settings
) -> None:
    """Groups that are invited, and the person whom a limit counts by."""
    node = served.node
    invited = await node.create(units=2, order="arrival", audience={"groups": ["gold"]})
    home = await node.create(units=9, order="arrival", limit_by="household")
    found = await answers(
        served,
        join(invited, "ann", groups=["gold"]),
        *(join(home, user, household="7") for user in ("ann", "bob")),
        join(home, "cat", household="8"),
        join(home, "dan"),
    )
    *entries, (status, _, refusal) = found
    assert [status for status, _, _ in entries] == [201] * 4
    assert (status, refusal["code"]) == (403, "person_unknown")
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.serve()
    users = ("ann", "ann", "bob", "cat")
    states = [(await look(node, entry, user))["state"] for (_, _, entry), user in zip(entries, users, strict=True)]
    assert states == ["served", "served", "passed_over", "served"]
    assert begun == ([True] * 4 + [False] if way == "bytes" else [])


async def test_what_a_line_says(served: Served, way: Way, begun: list[bool]) -> None:
    node = served.node
    draw = await node.create(units=7, order="draw", limit_per_buyer=2, **later())
    found = await answers(served, join(draw, "ann"), join(draw, "ann"), join(draw, "bob", b'{"quantity": 2}'))
    (status, headers, first), (again, _, same), (_, _, other) = found
    assert (status, again, found[2][0]) == (201, 200, 201)
    assert headers.keys() == SAME | {"date", "location"}
    assert headers["location"] == f"/v1/entries/{first['entry_id']}"
    assert headers["cache-control"] == "no-store"
    assert first == same
    assert first["receipt"].startswith(f"{first['entry_id']}.")
    wanted = (first["entry_id"], draw["id"], draw["round"], "waiting", 1, None, None, 1, 7, None, first["joined_at"])
    assert tuple(first[name] for name in TOLD) == wanted
    assert (other["quantity"], other["of"]) == (2, 2)
    looked = await node.http.get(f"/v1/entries/{first['entry_id']}", headers=buyer("ann"))
    assert {**looked.json(), "of": 1} == first
    assert begun == ([True] * 3 if way == "bytes" else [])


async def test_what_is_not_plainly_right_is_refused_alike(served: Served, way: Way, begun: list[bool]) -> None:
    node = served.node
    draw = await node.create(order="draw", **later())
    closed = await node.create(order="draw", **later())
    await node.http.post(f"/v1/sales/{closed['id']}/close", headers=OPERATOR)
    cases = {
        join(await node.create(), "ann"): (409, "no_line"),
        join(closed, "ann"): (410, "ended"),
        join({"id": "NOPE"}, "ann"): (404, "unknown_sale"),
        join(draw, "ann").replace(b"Bearer ", b"Bearer x"): (401, "unauthenticated"),
        join(draw, "ann", b"{"): (400, "bad_request"),
        join(draw, "ann", b'{"quantity":0}'): (422, "invalid"),
        join(draw, "ann", b'{"quantity":2}'): (409, "limit_reached"),
        join(await node.create(order="draw", audience={"groups": ["gold"]}, **later()), "ann"): (403, "not_invited"),
        join(await node.create(order="draw", **{"pass": "work"}, **later()), "ann"): (403, "pass_required"),
    }
    found = await answers(served, *cases)
    assert [(status, body["code"]) for status, _, body in found] == list(cases.values())
    assert not any(begun), "nothing was begun that was then refused"
    assert len(begun) == (len(cases) if way == "bytes" else 0)
    assert (await node.http.get(f"/v1/sales/{draw['id']}/line")).json()["waiting"] == 0


async def test_one_address_joins_as_often_as_it_may_whichever_way(
    served: Served, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = served.node
    draw = await node.create(order="draw", **later())
    monkeypatch.setattr(AddressRate, "wait_s", lambda self, address, now: 7)
    ((status, headers, body),) = await answers(served, join(draw, "ann"))
    assert (status, body["code"], headers["retry-after"]) == (429, "rate_limited", "7")
    assert (await node.http.get(f"/v1/sales/{draw['id']}/line")).json()["waiting"] == 0


async def test_a_ledger_that_does_not_answer(
    served: Served, way: Way, begun: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> None:
        raise LedgerUnavailable("away")

    draw = await served.node.create(order="draw", **later())
    monkeypatch.setattr(served.node.api.context.line.desk._lines, "join", away)
    ((status, headers, body),) = await answers(served, join(draw, "ann"))
    assert (status, body["code"]) == (503, "not_ready")
    assert "retry-after" in headers
    assert begun == ([True] if way == "bytes" else [])


def slow(node: Node, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event, list[str]]:
    """Set when the ledger has been asked, to be set for it to answer; and who was written."""
    asked, go_on, users = asyncio.Event(), asyncio.Event(), list[str]()
    lines = node.api.context.line.desk._lines
    original = lines.join

    async def join(round_id: int, joinings: Any) -> Any:
        users.extend(joining.user for joining in joinings)
        asked.set()
        await go_on.wait()
        return await original(round_id, joinings)

    monkeypatch.setattr(lines, "join", join)
    return asked, go_on, users


async def test_more_arrives_while_a_join_is_on_its_way(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It becomes an ordinary request with the entry that it is waiting for: it does not join again."""
    draw = await served.node.create(order="draw", **later())
    asked, go_on, users = slow(served.node, monkeypatch)
    async with connected(served) as (reader, writer), asyncio.timeout(PATIENCE_S):
        writer.write(join(draw, "ann"))
        await asked.wait()
        writer.write(join(draw, "bob") + b"GET /v1/sales HTTP/1.1\r\nHost: seckill\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)  # whatever it does with them, it does now
        go_on.set()
        found = [await read(reader) for _ in range(3)]
    assert [status for status, _, _ in found] == [201, 201, 200]
    assert users == ["ann", "bob"]


async def test_who_hangs_up_is_in_the_line(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = await served.node.create(order="draw", **later())
    asked, go_on, users = slow(served.node, monkeypatch)
    async with connected(served) as (_, writer), asyncio.timeout(PATIENCE_S):
        writer.write(join(draw, "ann"))
        await asked.wait()
    go_on.set()
    ((status, _, entry),) = await answers(served, join(draw, "ann"))
    assert (status, entry["state"]) == (200, "waiting")
    assert users == ["ann", "ann"]
