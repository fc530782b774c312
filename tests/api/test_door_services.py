"""A captcha service and a risk hook, as stand-ins of their protocols: right, wrong, away; and what counts then."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from seckill.backends.door.json_service import AT_ONCE_MAX
from seckill.bootstrap.engine import Engine
from seckill.client import AsyncClient, CheckNeeded
from seckill.settings import Secret, Settings
from tests.api.conftest import Node, Served, buyer, make_node, token
from tests.patience import PATIENCE_S

SECRET = "the-secret-of-the-captcha-service"
WORK = 1_000


@dataclass
class StandIn:
    """Answers any POST with what `say` makes of its body. If `say` returns None, it does not answer."""

    say: Callable[[str], Any]
    url: str = ""
    bodies: list[str] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].split("\r\n")[0])
            self.bodies.append((await reader.readexactly(length)).decode())
            said = self.say(self.bodies[-1])
            if said is None:
                await reader.read()  # until the other side gives up
                return
            status, body = said
            answer = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(answer.encode() + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def stand_in(say: Callable[[str], Any]) -> AsyncIterator[StandIn]:
    service = StandIn(say)
    server = await asyncio.start_server(service.answer, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/siteverify"
    try:
        yield service
    finally:
        server.close()
        for writer in service.writers:
            writer.close()


def site_verify() -> Callable[[str], Any]:
    """Works like Turnstile, hCaptcha and reCAPTCHA: a response is valid once."""
    used: set[str] = set()

    def say(body: str) -> tuple[int, bytes]:
        fields = {name: values[0] for name, values in parse_qs(body).items()}
        good = fields["secret"] == SECRET and fields["response"].startswith("good") and fields["response"] not in used
        used.add(fields["response"])
        content = {"success": True} if good else {"success": False, "error-codes": ["invalid-input-response"]}
        return 200, json.dumps(content).encode()

    return say


def checking(settings: Settings, service: StandIn, **changes: Any) -> Settings:
    facts: dict[str, Any] = {"check_within_s": PATIENCE_S, "check_site_key": "site-1"}
    return replace(settings, check_url=service.url, check_secret=Secret(SECRET), **(facts | changes))


def hooked(settings: Settings, service: StandIn, **changes: Any) -> Settings:
    facts: dict[str, Any] = {"risk_within_s": PATIENCE_S}
    return replace(settings, risk_url=service.url, **(facts | changes))


async def ask(node: Node, sale: dict[str, Any], user: str, **body: Any) -> httpx2.Response:
    headers = buyer(user) | {"User-Agent": "a-browser"}
    return await node.http.post(f"/v1/sales/{sale['id']}/pass", json=body, headers=headers)


async def press(node: Node, sale: dict[str, Any], user: str, pass_: str) -> int:
    headers = buyer(user) | {"Seckill-Pass": pass_}
    return (await node.http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)).status_code


async def test_a_response_of_the_service_is_worth_a_pass_once(settings: Settings, engine: Engine) -> None:
    async with stand_in(site_verify()) as service:
        node = await make_node(checking(settings, service), engine)
        sale = await node.create(**{"pass": "check"})
        challenge = (await ask(node, sale, "ann")).json()
        assert (challenge["kind"], challenge["site_key"]) == ("check", "site-1")
        ticket = challenge["ticket"]
        given = await ask(node, sale, "ann", response="good-1", ticket=ticket)
        assert given.status_code == 201, given.text
        assert await press(node, sale, "ann", given.json()["pass"]) == 202
        at_fault = {("ann", "good-1"): "response", ("ann", "bad"): "response", ("bob", "good-2"): "ticket"}
        for (user, response), field in at_fault.items():
            refused = await ask(node, sale, user, response=response, ticket=ticket)
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)
        fields = parse_qs(service.bodies[0])
        assert (fields["secret"], fields["response"], fields["remoteip"]) == ([SECRET], ["good-1"], ["127.0.0.1"])
        assert len(service.bodies) == 3, "bob has no ticket, so the service is not asked"
        await node.http.aclose()


@pytest.mark.parametrize("trouble", [None, (500, b"{}"), (200, b"no json"), (200, b"{}"), (302, b"")])
@pytest.mark.parametrize("fallback", ["work", "refuse", "allow"])
async def test_when_the_service_is_away_what_was_declared_counts(
    settings: Settings, engine: Engine, trouble: Any, fallback: str
) -> None:
    async with stand_in(lambda _: trouble) as service:
        within_s = 0.2 if trouble is None else PATIENCE_S
        node = await make_node(checking(settings, service, check_fallback=fallback, check_within_s=within_s), engine)
        sale = await node.create(**{"pass": "check", "pass_work": WORK})
        ticket = (await ask(node, sale, "ann")).json()["ticket"]
        answer = await ask(node, sale, "ann", response="good", ticket=ticket)
        if fallback == "work":
            assert (answer.status_code, answer.json()["kind"]) == (200, "work")
        elif fallback == "refuse":
            assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
        else:
            assert answer.status_code == 201
        assert len(service.bodies) == 1
        await node.http.aclose()


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("fallback", ["work", "allow"])
async def test_who_sends_nonsense_to_the_service_does_not_get_what_counts_while_it_is_away(
    settings: Settings, engine: Engine, status: int, fallback: str
) -> None:
    """Clients choose what it is sent, and it is not away."""
    verify = site_verify()
    async with stand_in(lambda body: verify(body) if "good" in body else (status, b"what is this?")) as service:
        node = await make_node(checking(settings, service, check_fallback=fallback), engine)
        sale = await node.create(**{"pass": "check", "pass_work": WORK})
        ticket = (await ask(node, sale, "bot")).json()["ticket"]
        answer = await ask(node, sale, "bot", response="\x00<'--" * 1000, ticket=ticket)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "response"), answer.text
        assert (await ask(node, sale, "bot", response="good-1", ticket=ticket)).status_code == 201
        await node.http.aclose()


async def test_a_service_that_hangs_holds_up_no_more_than_its_threads(settings: Settings, engine: Engine) -> None:
    async with stand_in(lambda _: None) as service:
        node = await make_node(checking(settings, service, check_fallback="refuse"), engine)
        sale = await node.create(**{"pass": "check"})
        tickets = [(await ask(node, sale, f"b{n}")).json()["ticket"] for n in range(AT_ONCE_MAX + 1)]
        waiting = [
            asyncio.create_task(ask(node, sale, f"b{n}", response="good", ticket=tickets[n]))
            for n in range(AT_ONCE_MAX)
        ]
        async with asyncio.timeout(PATIENCE_S):
            while len(service.bodies) < AT_ONCE_MAX:
                await asyncio.sleep(0.01)
            refused = await ask(node, sale, f"b{AT_ONCE_MAX}", response="good", ticket=tickets[-1])
        assert (refused.status_code, len(service.bodies)) == (503, AT_ONCE_MAX), "at once, without asking"
        assert (await ask(node, sale, "ann")).status_code == 200, "the rest goes on"
        for task in waiting:
            task.cancel()
        await node.http.aclose()


async def test_the_client_is_told_that_a_person_is_needed(settings: Settings, served: Served, engine: Engine) -> None:
    async with stand_in(site_verify()) as service:
        other = await make_node(checking(settings, service), engine)
        sale = await other.create(**{"pass": "check"})
        served.node.api._rest = other.api._rest
        async with AsyncClient(served.url, token("ann")) as shop:
            with pytest.raises(CheckNeeded) as needed:
                await shop.get_pass(sale["id"])
            assert needed.value.site_key == "site-1"
            given = await shop.get_pass(sale["id"], response="good", ticket=needed.value.ticket)
            assert (await shop.claim(sale["id"], pass_=given.pass_)).order_id
        await other.http.aclose()


async def test_the_hook_allows_denies_or_challenges_and_is_asked_once(settings: Settings, engine: Engine) -> None:
    answers = {"friend": "allow", "thief": "deny", "ann": "challenge"}

    def say(body: str) -> tuple[int, bytes]:
        return 200, json.dumps({"decision": answers[json.loads(body)["buyer"]]}).encode()

    async with stand_in(say) as hook:
        node = await make_node(hooked(settings, hook), engine)
        sale = await node.create(units=10, **{"pass": "work", "pass_work": WORK})
        friend = await ask(node, sale, "friend")
        assert friend.status_code == 201, "no challenge"
        thief = await ask(node, sale, "thief")
        assert (thief.status_code, thief.json()["code"]) == (403, "pass_denied")
        challenge = await ask(node, sale, "ann")
        assert challenge.json()["kind"] == "work"
        assert json.loads(hook.bodies[-1]) == {
            "buyer": "ann",
            "sale_id": sale["id"],
            "round": sale["round"],
            "address": "127.0.0.1",
            "agent": "a-browser",
        }
        asked = len(hook.bodies)
        await ask(node, sale, "ann", solution=challenge.json() | {"number": 1})
        assert await press(node, sale, "friend", friend.json()["pass"]) == 202
        assert len(hook.bodies) == asked == 3, "never with the answer to a challenge, never with a claim"
        await node.http.aclose()


@pytest.mark.parametrize("trouble", [None, (500, b"{}"), (200, b'{"decision": "perhaps"}')])
@pytest.mark.parametrize(("fallback", "status"), [("allow", 201), ("deny", 403), ("challenge", 200)])
async def test_when_the_hook_is_away_what_was_declared_counts(
    settings: Settings, engine: Engine, trouble: Any, fallback: str, status: int
) -> None:
    async with stand_in(lambda _: trouble) as hook:
        within_s = 0.2 if trouble is None else PATIENCE_S
        node = await make_node(hooked(settings, hook, risk_fallback=fallback, risk_within_s=within_s), engine)
        sale = await node.create(**{"pass": "work"})
        assert (await ask(node, sale, "ann")).status_code == status
        assert len(hook.bodies) == 1
        await node.http.aclose()
