"""Plain claims go straight to the gate while the node knows of nothing that would stop them. Whatever it learns of the
sale or of its buyers counts for the next claim."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from seckill.engine.sale_cache import SaleCache
from seckill.native.kernel_choice import KERNEL
from seckill.web.claims.claim import ClaimRoute
from seckill.web.claims.claim_protocol import ClaimingProtocol
from tests.api.conftest import OPERATOR, Served, token, token_with
from tests.api.test_blocked_buyers import act
from tests.api.test_short_way import connected, read, request
from tests.api.test_two_ways import answers, bare, read_in_python
from tests.patience import PATIENCE_S


@pytest.fixture
def straight(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sales of claims for which nothing was looked up."""
    if KERNEL is None:
        read_in_python(served, monkeypatch)
    sales: list[str] = []
    original, found = ClaimRoute.begin_plain, ClaimRoute._find_way

    def looked_up(self: ClaimRoute, sale_id: str, sale: Any) -> Any:
        sales.append("looked up")
        return found(self, sale_id, sale)

    def noted(self: ClaimRoute, said: Any, *more: Any) -> Any:
        before = len(sales)
        begun = original(self, said, *more)
        if begun is True and len(sales) == before:
            sales.append(said[0])
        return begun

    monkeypatch.setattr(ClaimRoute, "begin_plain", noted)
    monkeypatch.setattr(ClaimRoute, "_find_way", looked_up)
    return sales


async def press(served: Served, sale: dict[str, Any], user: str) -> tuple[int, str]:
    ((status, _, body),) = await answers(served, request(sale, user))
    return status, body.get("code", body.get("state"))


async def until_straight(served: Served, sale: dict[str, Any], straight: list[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        number = 0
        while sale["id"] not in straight:
            number += 1
            assert await press(served, sale, f"early-{number}") == (202, "queued")


async def pauses(served: Served, sale: dict[str, Any]) -> None:
    await served.node.http.post(f"/v1/sales/{sale['id']}/pause", headers=OPERATOR)


async def asks_for_a_pass(served: Served, sale: dict[str, Any]) -> None:
    answer = await served.node.http.patch(f"/v1/sales/{sale['id']}", json={"pass": "work"}, headers=OPERATOR)
    assert answer.status_code == 200, answer.text


async def invites(served: Served, sale: dict[str, Any]) -> None:
    change = {"audience": {"groups": ["gold"]}}
    answer = await served.node.http.patch(f"/v1/sales/{sale['id']}", json=change, headers=OPERATOR)
    assert answer.status_code == 200, answer.text


async def hides(served: Served, sale: dict[str, Any]) -> None:
    answer = await served.node.http.patch(f"/v1/sales/{sale['id']}", json={"published": False}, headers=OPERATOR)
    assert answer.status_code == 200, answer.text


async def blocks(served: Served, sale: dict[str, Any]) -> None:
    await act(served.node, "buyers/block", buyer="ann")


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (pauses, (409, "paused")),
        (asks_for_a_pass, (403, "pass_required")),
        (invites, (403, "not_invited")),
        (hides, (404, "unknown_sale")),
        (blocks, (403, "blocked")),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
async def test_what_operators_change_counts_for_the_next_claim(
    served: Served,
    straight: list[str],
    happens: Callable[[Served, dict[str, Any]], Awaitable[None]],
    expected: tuple[int, str],
) -> None:
    sale = await served.node.create(units=100_000)
    await until_straight(served, sale, straight)
    await happens(served, sale)
    # The node that made the change knows it; what it does not know of, the gate does.
    assert await press(served, sale, "ann") == expected


async def test_after_the_sell_out_nobody_asks_the_gate(
    served: Served, straight: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the node learns nothing else from then on."""
    monkeypatch.setattr(SaleCache, "news", property(lambda _: 0, lambda *_: None), raising=False)
    few = await served.node.create(units=10)
    await until_straight(served, few, straight)
    asked: list[str] = []
    original = served.node.engine.gate.admit

    async def noted(ref: Any, claims: Any) -> Any:
        asked.extend(claim.user for claim in claims)
        return await original(ref, claims)

    monkeypatch.setattr(served.node.engine.gate, "admit", noted)
    number = 0
    async with asyncio.timeout(PATIENCE_S):
        while True:
            asked.clear()
            number += 1
            said = await press(served, few, f"late-{number}")
            if not asked:
                break
    assert said == (409, "sold_out")


@pytest.mark.parametrize(
    "said",
    [
        {"exp": 1_000_000_000},
        {"exp": 100_000_000_000},
        {"nbf": 100_000_000_000},
        {"iat": 100_000_000_000},
        {"aud": "others"},
        {"aud": ["others"]},
        {"sub": ""},
        {"sub": "a b\n"},
        {"exp": "soon"},
    ],
)
async def test_a_token_that_is_not_good_is_refused_as_ever(
    served: Served, straight: list[str], said: dict[str, Any]
) -> None:
    sale = await served.node.create(units=100_000)
    await until_straight(served, sale, straight)
    ((status, _, body),) = await answers(served, bare(sale, f"Authorization: Bearer {token_with('ann', **said)}"))
    assert (status, body["code"]) == (401, "unauthenticated")


async def test_a_token_that_others_signed_is_refused_as_ever(served: Served, straight: list[str]) -> None:
    sale = await served.node.create(units=100_000)
    await until_straight(served, sale, straight)
    header, _, signature = token("ann").split(".")
    _, claims, _ = token("eve").split(".")
    for forged in (f"{header}.{claims}.{signature}", f"{header}.{claims}.{'A' * 43}"):
        ((status, _, body),) = await answers(served, bare(sale, f"Authorization: Bearer {forged}"))
        assert (status, body["code"]) == (401, "unauthenticated")


async def test_who_cannot_be_let_in_is_not_kept_for_ever(
    served: Served, straight: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate's queue here may be full, and then the answer comes before the claim has really begun."""
    sale = await served.node.create(units=100_000)
    await until_straight(served, sale, straight)
    pressed: list[ClaimingProtocol] = []
    original = ClaimingProtocol._begin_plain

    def noted(self: ClaimingProtocol, *claim: Any) -> bool:
        pressed.append(self)
        return original(self, *claim)

    monkeypatch.setattr(ClaimingProtocol, "_begin_plain", noted)
    served.node.api.claims._ways[sale["id"]].batcher._waiting_max = 0
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann"))
        status, _, body = await read(reader)
        assert (status, body["code"]) == (503, "overloaded")
        assert pressed[-1].is_idle()
        assert pressed[-1].idle_since() > 0  # it has a deadline, like every connection on which nothing happens


async def test_an_answer_that_cannot_be_written_concerns_nobody_else(
    served: Served, straight: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = await served.node.create(units=100_000)
    await until_straight(served, sale, straight)
    admit, admitted = served.node.engine.gate.admit, ClaimRoute.admitted
    together: list[int] = []
    go_on = asyncio.Event()

    async def slow(ref: Any, claims: Any) -> Any:
        together.append(len(claims))
        await go_on.wait()
        return await admit(ref, claims)

    failing = [RuntimeError("no words")]

    def fails_once(self: ClaimRoute, *answer: Any) -> bytes | None:
        if failing and together[-1] > 1:
            raise failing.pop()
        return admitted(self, *answer)

    monkeypatch.setattr(served.node.engine.gate, "admit", slow)
    monkeypatch.setattr(ClaimRoute, "admitted", fails_once)
    (batcher,) = served.node.api.context.desk._batchers.values()
    pressing = [asyncio.create_task(press(served, sale, f"b-{number}")) for number in range(6)]
    async with asyncio.timeout(PATIENCE_S):
        while sum(together) + len(batcher._waiting) < 6:  # on their way to the gate, or waiting for those who are
            await asyncio.sleep(0.01)
    go_on.set()
    async with asyncio.timeout(PATIENCE_S):
        said = await asyncio.gather(*pressing)
    assert sorted(said) == [(202, "queued")] * 5 + [(500, "internal")]
