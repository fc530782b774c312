"""A sale may demand a pass: a buyer without a pass of their own for this round is refused, and no buyer gets one
without work."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest

from seckill.client import AsyncClient, Denied
from seckill.domain.door import Door, PassKind
from seckill.domain.proof_of_work import solve
from seckill.engine.door import pass_desk, work_difficulty
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, Served, buyer, make_node, settings_of_a_node, token
from tests.api.repeating import add, announce, now_ms, shown, stop_clock
from tests.making import HOUR_MS

WORK = 1_000


@pytest.fixture
def settings(redis_url: str, sqlite_database: str) -> Settings:
    proxies = (ip_network("127.0.0.1"),)
    return replace(settings_of_a_node(redis_url, sqlite_database), trusted_proxies=proxies, passes_per_address=20)


async def ask(node: Node, sale: dict[str, Any], user: str, address: str = "", **body: Any) -> httpx2.Response:
    headers = buyer(user) | ({"X-Forwarded-For": address} if address else {})
    return await node.http.post(f"/v1/sales/{sale['id']}/pass", json=body, headers=headers)


def solution_of(challenge: dict[str, Any]) -> dict[str, Any]:
    number = solve(challenge["challenge"], challenge["salt"], challenge["maxnumber"])
    return {name: challenge[name] for name in ("challenge", "salt", "signature")} | {"number": number}


async def pass_of(node: Node, sale: dict[str, Any], user: str) -> str:
    challenge = await ask(node, sale, user)
    assert challenge.status_code == 200, challenge.text
    given = await ask(node, sale, user, solution=solution_of(challenge.json()))
    assert given.status_code == 201, given.text
    return str(given.json()["pass"])


async def press(http: httpx2.AsyncClient, sale: dict[str, Any], user: str, pass_: str | None) -> httpx2.Response:
    headers = buyer(user) | ({} if pass_ is None else {"Seckill-Pass": pass_})
    return await http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)


@pytest.mark.usefixtures("way")
async def test_only_a_pass_of_ones_own_for_this_sale_lets_in(served: Served, over_the_wire: httpx2.AsyncClient) -> None:
    node = served.node
    sale, other = [await node.create(**{"pass": "work", "pass_work": WORK}) for _ in range(2)]
    anns, bobs, elsewhere = [await pass_of(node, *of) for of in ((sale, "ann"), (sale, "bob"), (other, "ann"))]
    end, _, mac = anns.partition(".")
    for wrong in (None, "", "nonsense", bobs, elsewhere, f"{int(end) + 1}.{mac}", anns + "x", anns[:-1]):
        refused = await press(over_the_wire, sale, "ann", wrong)
        assert (refused.status_code, refused.json()["code"]) == (403, "pass_required"), wrong
    assert (await press(over_the_wire, sale, "ann", anns)).status_code == 202
    assert (await press(over_the_wire, sale, "ann", anns)).json()["code"] == "limit_reached", "good for more than one"


@pytest.mark.usefixtures("way")
async def test_what_comes_before_a_pass_and_what_after(served: Served, over_the_wire: httpx2.AsyncClient) -> None:
    """The order is that of the contract: token, sale, invitation, pass, and then whatever else is wrong with the
    claim."""
    sale = await served.node.create(**{"pass": "work"})
    path = f"/v1/sales/{sale['id']}/orders"
    assert (await over_the_wire.post(path)).json()["code"] == "unauthenticated"
    unknown = await over_the_wire.post("/v1/sales/0000000000000/orders", headers=buyer("ann"))
    assert unknown.json()["code"] == "unknown_sale"
    invalid = await over_the_wire.post(path, json={"quantity": 0}, headers=buyer("ann"))
    assert invalid.json()["code"] == "pass_required"


async def test_a_solution_shown_again_is_the_same_buyers_pass_again(node: Node) -> None:
    sale = await node.create(**{"pass": "work", "pass_work": WORK})
    solution = solution_of((await ask(node, sale, "ann")).json())
    given = [await ask(node, sale, "ann", solution=solution) for _ in range(3)]
    assert [answer.status_code for answer in given] == [201] * 3
    stolen = await ask(node, sale, "bob", solution=solution)
    assert (stolen.status_code, stolen.json()["errors"][0]["field"]) == (422, "solution")
    for answer in given:
        assert (await press(node.http, sale, "bob", answer.json()["pass"])).json()["code"] == "pass_required"
    presses = [await press(node.http, sale, "ann", answer.json()["pass"]) for answer in given]
    assert [answer.status_code for answer in presses] == [202, 409, 409], "one unit, as the limit says"


async def test_a_wrong_solution_and_one_for_another_sale(node: Node) -> None:
    sale, other = [await node.create(**{"pass": "work", "pass_work": WORK}) for _ in range(2)]
    right = solution_of((await ask(node, sale, "ann")).json())
    for solution, sentence in (
        (right | {"number": right["number"] + 1}, "is not right"),
        (right | {"signature": "0" * 64}, "is not right"),
        (right | {"signature": "é" * 64}, "is not right"),
        (solution_of((await ask(node, other, "ann")).json()), "belongs to another buyer or another round"),
    ):
        answer = await ask(node, sale, "ann", solution=solution)
        assert (answer.status_code, answer.json()["errors"]) == (422, [{"field": "solution", "message": sentence}])
    assert (await ask(node, sale, "ann", solution={"number": 1})).status_code == 422


async def test_a_challenge_and_a_pass_end(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    sale = await node.create(**{"pass": "work", "pass_work": WORK})
    solution = solution_of((await ask(node, sale, "ann")).json())
    made = await pass_of(node, sale, "ann")
    now_ms = node.api.context.sale_cache.now_ms()
    cache = node.api.context.sale_cache
    monkeypatch.setattr(cache, "now_ms", lambda: now_ms + 1000 * pass_desk.ANSWER_WITHIN_S + 1000)
    monkeypatch.setattr(node.api.context.passes, "_now_ms", cache.now_ms)
    late = await ask(node, sale, "ann", solution=solution)
    assert "too late" in late.json()["detail"]
    assert (await press(node.http, sale, "bob", made)).json()["code"] == "pass_required"
    monkeypatch.setattr(cache, "now_ms", lambda: now_ms + 1801_000)
    assert (await press(node.http, sale, "ann", made)).json()["code"] == "pass_required"
    monkeypatch.setattr(cache, "now_ms", lambda: now_ms + 1700_000)
    assert (await press(node.http, sale, "ann", made)).status_code == 202


async def test_it_can_be_had_before_the_start_and_not_for_ever_before(node: Node, settings: Settings) -> None:
    now = datetime.now(UTC)
    soon, later = [
        await node.create(
            begins_at=(now + timedelta(seconds=settings.pass_s * times)).isoformat(),
            ends_at=(now + timedelta(hours=9)).isoformat(),
            **{"pass": "work", "pass_work": WORK},
        )
        for times in (0.9, 1.5)
    ]
    made = await pass_of(node, soon, "ann")
    assert (await press(node.http, soon, "ann", made)).json()["code"] == "not_started", "it is let through to the gate"
    early = await ask(node, later, "ann")
    assert (early.status_code, early.json()["code"]) == (409, "not_started")
    opens_at = datetime.fromisoformat(early.json()["opens_at"])
    assert opens_at == datetime.fromisoformat(early.json()["begins_at"]) - timedelta(seconds=settings.pass_s)


async def test_a_pass_of_one_round_is_none_for_the_next_but_for_the_second_between_them(node: Node) -> None:
    now = await now_ms(node)
    edge_ms = now + 5 * 60_000
    door = Door(pass_kind=PassKind.WORK, work=WORK)
    first = await announce(node, now - HOUR_MS, edge_ms, door=door)
    await add(node, first, edge_ms, edge_ms + HOUR_MS)
    sale = shown(node, first)
    stop_clock(node, now)
    of_first = await pass_of(node, sale, "ann")
    stop_clock(node, edge_ms + 60_000)
    of_second = await pass_of(node, sale, "ann")

    async def lets_in(pass_: str, at_ms: int) -> bool:
        stop_clock(node, at_ms)
        return bool((await press(node.http, sale, "ann", pass_)).json().get("code") != "pass_required")

    assert [await lets_in(of_first, edge_ms + late_ms) for late_ms in (-60_000, -900, 900, 60_000)] == [
        *(True, True, True, False)
    ]
    assert [await lets_in(of_second, edge_ms + late_ms) for late_ms in (-60_000, -900, 900, 60_000)] == [
        *(False, True, True, True)
    ]


async def test_it_gets_harder_with_how_many_an_address_asks_for(
    node: Node, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    wide = await make_node(replace(settings, passes_per_address=0), node.engine)
    sale = await wide.create(**{"pass": "work", "pass_work": WORK})

    async def harder(address: str, user: str) -> float:
        return float((await ask(wide, sale, user, address)).json()["maxnumber"]) / WORK

    easy = work_difficulty.EASY_CHALLENGES
    found = [await harder("203.0.113.9", f"bot-{number}") for number in range(4 * easy)]
    assert found[: easy - 1] == [1.0] * (easy - 1)
    assert found == sorted(found)
    assert 3.5 < found[-1] <= 4.0
    assert await harder("203.0.113.10", "ann") == 1.0, "another address"
    assert await harder("", "bob") == 1.0, "nobody in particular"
    await wide.http.aclose()


async def test_questions_of_an_address_are_limited(settings: Settings, node: Node) -> None:
    node = await make_node(replace(settings, passes_per_address=1), node.engine)  # few: a busy machine asks slowly
    sale = await node.create(**{"pass": "work"})
    answers = [await ask(node, sale, f"bot-{number}", "203.0.113.9") for number in range(50)]
    assert [answer.status_code for answer in answers[:10]] == [200] * 10
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json()["code"] == "rate_limited"
    assert int(refused.headers["Retry-After"]) >= 1
    assert (await ask(node, sale, "ann", "203.0.113.10")).status_code == 200
    await node.http.aclose()


async def test_a_sale_without_one_and_settings_without_a_service(node: Node) -> None:
    sale = await node.create()
    assert (await ask(node, sale, "ann")).json()["code"] == "no_pass_needed"
    assert (await press(node.http, sale, "ann", "anything")).status_code == 202
    response = await node.http.post(
        "/v1/sales",
        json={"title": "x", "units": 1, "begins_at": "2026-01-01T00:00:00Z", "ends_at": "2100-01-01T00:00:00Z"}
        | {"pass": "check"},
        headers=OPERATOR,
    )
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "pass")


async def test_an_operator_demands_one_and_no_longer(node: Node) -> None:
    sale = await node.create(units=10)
    path = f"/v1/sales/{sale['id']}"
    changed = await node.http.patch(path, json={"pass": "work", "pass_work": 5000}, headers=OPERATOR)
    assert (changed.json()["pass"], changed.json()["pass_work"]) == ("work", 5000)
    assert (await press(node.http, sale, "ann", None)).json()["code"] == "pass_required"
    assert (await node.http.patch(path, json={"pass": "none"}, headers=OPERATOR)).json()["pass"] == "none"
    assert (await press(node.http, sale, "ann", None)).status_code == 202
    wrong = await node.http.patch(path, json={"pass": "maybe"}, headers=OPERATOR)
    assert wrong.json()["errors"] == [{"field": "pass", "message": "must be none, work or check"}]


async def test_the_client_solves_the_work_itself(served: Served) -> None:
    sale = await served.node.create(**{"pass": "work", "pass_work": WORK})
    async with AsyncClient(served.url, token("ann")) as shop:
        with pytest.raises(Denied) as refused:
            await shop.claim(sale["id"])
        assert refused.value.code == "pass_required"
        given = await shop.get_pass(sale["id"])
        assert given.expires_at > datetime.now(UTC) + timedelta(minutes=20)
        claimed = await shop.claim(sale["id"], pass_=given.pass_)
        assert claimed.order_id
