"""Pages of a payment provider's, with processes that die between what the provider does and what the ledger notes."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seckill.audit import open_auditor
from seckill.backends.sql import open_ledger
from seckill.payment import Notice
from tests.backends.payment.stand_in import served
from tests.backends.payment.stripe_stand_in import KEY, OLD_SECRET, SECRET, StripeStandIn
from tests.e2e.checks import rows, until_drained, until_passed_on
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.e2e.test_payments import until
from tests.patience import PATIENCE_S

PRICE = 9900
MADE, CALLED_OFF = "checkouts.made", "checkouts.call_off.after"


class Buyers:
    """They repeat what was not answered, as browsers do."""

    def __init__(self, stack: Stack, orders: dict[str, str]) -> None:
        self._stack = stack
        self.orders = orders
        self._http = httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S)
        stack.clients.append(self._http)

    async def ask(self, user: str, verb: str = "", *, tries: int | None = None) -> httpx2.Response | None:
        """Returns None if `tries` requests had no answer."""
        method, path = ("POST", f"/{verb}") if verb else ("GET", "")
        headers = {"Authorization": f"Bearer {self._stack.token(user)}"}
        async with asyncio.timeout(PATIENCE_S):
            while tries != 0:
                tries = None if tries is None else tries - 1
                try:
                    response = await self._http.request(
                        method, f"/v1/orders/{self.orders[user]}{path}", headers=headers
                    )
                    if response.status_code < 500:
                        return response
                except httpx2.HTTPError:
                    pass
                await asyncio.sleep(0.1)
        return None

    async def order(self, user: str) -> dict[str, Any]:
        answer = await self.ask(user)
        assert answer is not None
        found: dict[str, Any] = answer.json()
        return found


def _environment(side: StripeStandIn) -> dict[str, str]:
    return {
        "SECKILL_PAYMENT_PROVIDER": "stripe",
        "SECKILL_PUBLIC_URL": "https://sale.example.com",
        "SECKILL_STRIPE_KEY": KEY,
        "SECKILL_STRIPE_WEBHOOK_SECRETS": f"{OLD_SECRET},{SECRET}",
        "SECKILL_STRIPE_URL": side.url,
    }


def _pay(side: StripeStandIn, order_id: str) -> Notice:
    """Pays on the provider's page. Returns what its notice says, should it send one."""
    [session] = [each for each in side.sessions.values() if each["metadata"]["seckill_order"] == order_id]
    session |= {"status": "complete", "payment_status": "paid", "payment_intent": f"pi_{order_id}"}
    return Notice(ref=f"pi_{order_id}", order_id=order_id, amount_cents=PRICE, currency="CNY")


async def _restart(stack: Stack, **settings: str) -> None:
    """Frees at once what a killed process had taken, instead of after half a minute."""
    stack.kill_everything()
    ledger = open_ledger(stack.settings.database_url)
    async with ledger.database.writers.begin() as connection:
        await connection.exec_driver_sql("UPDATE checkouts SET next_ms = 0 WHERE next_ms IS NOT NULL")
    await ledger.close()
    await stack.start(**settings)


async def _until_killed(stack: Stack, failpoint: str, times: int) -> None:
    async def killed() -> bool:
        return stack.logged(f"failpoint {failpoint}: kill") >= times

    await until(f"{failpoint} was reached {times} times", killed)


@pytest.mark.timeout(1800)
async def test_money_and_orders_agree_whoever_dies_beside_the_provider(folder: Path) -> None:
    async with served(StripeStandIn()) as side:
        stack = Stack(folder, settings=_environment(side))
        async with running(stack, SECKILL_FAILPOINTS=f"{MADE}=kill"):
            sale = await stack.create_sale(units=3)
            crowd = Crowd(stack, sale)
            users = ["pays", "pays-and-cancels", "cancels"]
            for user in users:
                await crowd.buy(user)
            buyers = Buyers(stack, crowd.orders)
            await _dies_with_a_page_in_hand(stack, side, buyers, users)
            await _restart(stack, SECKILL_FAILPOINTS=f"{CALLED_OFF}=kill")
            await _each_finds_the_page_again(side, buyers, users)
            await _dies_with_the_providers_word_in_hand(stack, side, buyers)
            assert await rows(stack.settings.database_url, "SELECT count(*) FROM payments") == [(1,)], "of one, as yet"
            await _restart(stack)
            await _until_called_off(stack)
            await _check(stack, buyers)
            assert stack.stop() == 0


async def _dies_with_a_page_in_hand(stack: Stack, side: StripeStandIn, buyers: Buyers, users: list[str]) -> None:
    """Each buyer presses until the provider has made the page; the process that asked for it is gone."""
    url = stack.settings.database_url
    for made, user in enumerate(users, 1):

        async def pressed(user: str = user, made: int = made) -> bool:
            await buyers.ask(user, "pay", tries=1)
            return len(side.sessions) == made

        await until(f"a page for {user}", pressed)
    await _until_killed(stack, MADE, len(users))
    assert await rows(url, "SELECT id FROM checkouts") == [], "the provider has pages of which the ledger knows nothing"


async def _each_finds_the_page_again(side: StripeStandIn, buyers: Buyers, users: list[str]) -> None:
    pages = {each["metadata"]["seckill_order"]: each["url"] for each in side.sessions.values()}
    for user in users:
        answer = await buyers.ask(user, "pay")
        assert answer is not None
        assert (answer.status_code, answer.json()["pay_url"]) == (202, pages[buyers.orders[user]])
    assert len(side.sessions) == len(users), "one page for each order"


async def _dies_with_the_providers_word_in_hand(stack: Stack, side: StripeStandIn, buyers: Buyers) -> None:
    """One pays, and its notice comes. One pays, cancels, and no notice comes: only who calls the page off hears of the
    money, and dies. One cancels, and the page is called off by who dies."""
    said = side.notify(_pay(side, buyers.orders["pays"]), time.time())
    assert said is not None
    headers, body = said
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.post(f"{stack.url}/v1/payments/callback", content=body, headers=headers)
    assert answer.status_code == 200
    _pay(side, buyers.orders["pays-and-cancels"])
    for user in ("pays-and-cancels", "cancels"):
        cancelled = await buyers.ask(user, "cancel")
        assert cancelled is not None
        assert cancelled.json()["state"] == "cancelled"
    await _until_killed(stack, CALLED_OFF, 2)
    left = await rows(stack.settings.database_url, "SELECT count(*) FROM checkouts WHERE next_ms IS NOT NULL")
    assert left >= [(2,)], "nothing is over before what the provider said of it is noted"


async def _until_called_off(stack: Stack) -> None:
    async def all_over() -> bool:
        return not await rows(stack.settings.database_url, "SELECT id FROM checkouts WHERE next_ms IS NOT NULL")

    await until("every page is called off", all_over)


async def _check(stack: Stack, buyers: Buyers) -> None:
    async def decided() -> bool:
        return bool((await buyers.order("pays-and-cancels"))["replaced_by"])

    await until("what the late money pays for is decided", decided)
    late = await buyers.order("pays-and-cancels")
    buyers.orders["instead"] = late["replaced_by"]
    assert [(await buyers.order(user))["state"] for user in ("pays", "cancels")] == ["paid", "cancelled"]
    url = stack.settings.database_url
    assert sorted(await rows(url, "SELECT provider_ref, amount_cents FROM payments")) == sorted(
        (f"pi_{buyers.orders[user]}", PRICE) for user in ("pays", "pays-and-cancels")
    )
    assert await rows(url, "SELECT count(*), sum(price_cents) FROM orders WHERE state = 'paid'") == [(2, 2 * PRICE)]
    assert await rows(url, "SELECT id FROM refunds") == []
    async with stack.engine() as engine:
        await until_drained(engine)
        await until_passed_on(engine)
    async with open_auditor(stack.settings) as auditor:
        report = await auditor.read(full=True)
    assert {result.invariant.name: result.findings for result in report.results if result.findings} == {}
