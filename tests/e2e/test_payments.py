"""Payments with real processes: late money pays a new order or goes back, whatever is killed meanwhile."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from seckill.backends.payment.callback_signature import HEADER, signature
from seckill.backends.sql import open_ledger
from seckill.local.data_folder import read_secrets
from seckill.settings import Secret
from tests.e2e.checks import rows, until_drained, until_passed_on
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S

UNITS = 3
WINDOWS = {
    # There are six decisions and three refunds for twelve notices: a process that dies often is started ever later.
    "payments.capture.after": 0.25,
    "payments.admit.after": 0.2,
    "ledger.settle.inside": 0.2,
    "ledger.give_back.inside": 0.3,
}


class PaymentSide:
    """A provider that repeats a notice until it is answered, as providers do."""

    def __init__(self, stack: Stack) -> None:
        secrets = read_secrets(stack.data)
        assert secrets is not None
        self._secret = Secret(secrets.payment_secret)
        self._stack = stack
        self._http = httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S)
        stack.clients.append(self._http)

    async def notify(self, order_id: str, ref: str) -> httpx2.Response:
        body = msgspec.json.encode({"payment_id": ref, "order_id": order_id, "amount_cents": 9900, "currency": "CNY"})
        async with asyncio.timeout(PATIENCE_S):
            while True:
                headers = {HEADER: signature(self._secret, body, int(time.time()))}
                try:
                    response = await self._http.post("/v1/payments/callback", content=body, headers=headers)
                    if response.status_code < 500:
                        return response
                except httpx2.HTTPError:
                    pass
                await asyncio.sleep(0.1)

    async def refund(self, order_id: str, key: str, wish: dict[str, Any]) -> httpx2.Response:
        """Refunds as an operator does who repeats a request until it is answered."""
        admin_key = self._stack.settings.admin_key
        assert admin_key is not None
        headers = {"Authorization": f"Bearer {admin_key.reveal()}", "Idempotency-Key": key}
        body = {"reason": "in a test"} | wish
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    address = f"/v1/admin/orders/{order_id}/refund"
                    response = await self._http.post(address, json=body, headers=headers)
                    if response.status_code < 500:
                        return response
                except httpx2.HTTPError:
                    pass
                await asyncio.sleep(0.1)

    async def show(self, user: str, order_id: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    response = await self._http.get(
                        f"/v1/orders/{order_id}", headers={"Authorization": f"Bearer {self._stack.token(user)}"}
                    )
                    if response.status_code == 200:
                        found: dict[str, Any] = response.json()
                        return found
                except httpx2.HTTPError:
                    pass
                await asyncio.sleep(0.1)


async def until(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not await holds():
        assert time.monotonic() < deadline_s, f"not in time: {what}"
        await asyncio.sleep(0.1)


async def buy_and_let_expire(crowd: Crowd, side: PaymentSide, users: list[str]) -> None:
    for user in users:
        while user not in crowd.orders:  # sold out until the units of those before are back
            await crowd.buy(user)
            await asyncio.sleep(0.05)

    async def all_over() -> bool:
        return {(await side.show(user, crowd.orders[user]))["state"] for user in users} == {"expired"}

    await until("the orders expire", all_over)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # each window on each database: `test_late.py`
@pytest.mark.timeout(1800)
async def test_late_money_pays_a_new_order_or_goes_back_whatever_is_killed(folder: Path, database_url: str) -> None:
    """Six late payments for three units: three new orders are paid, three refunds are made, none twice."""
    failpoints = ",".join(f"{name}=kill:{chance}" for name, chance in WINDOWS.items())
    # Without the audit: below, the time to pay is changed by hand, and it would notice.
    settings = {"SECKILL_CLAIM_IDLE_S": "1", "SECKILL_AUDIT_EVERY_S": "0"}
    stack = Stack(folder, database_url=database_url, settings=settings)
    async with running(stack, SECKILL_FAILPOINTS=failpoints):
        crowd = Crowd(stack, await stack.create_sale(units=UNITS, pay_within_s=1))
        side = PaymentSide(stack)
        early, later = ["u0", "u1", "u2"], ["u3", "u4", "u5"]
        await buy_and_let_expire(crowd, side, early)
        await buy_and_let_expire(crowd, side, later)
        # A new order must not expire before it is paid: on this sale that is a second, and a killed keeper needs more.
        await _give_time(stack)
        notices = [side.notify(crowd.orders[user], f"late-{user}") for user in early + later for _ in range(2)]
        answers = await asyncio.gather(*notices)
        assert {answer.status_code for answer in answers} <= {200, 202}

        impatience = Impatience(stack)

        async def all_decided() -> bool:
            await impatience.help()
            shown = [await side.show(user, crowd.orders[user]) for user in early + later]
            return all(order["state"] == "refunded" or order["replaced_by"] for order in shown)

        async def all_refunded() -> bool:
            await impatience.help()
            return not await rows(stack.settings.database_url, "SELECT id FROM refunds WHERE done_ms IS NULL")

        await until("all late payments are decided", all_decided)
        await until("all refunds are made", all_refunded)
        states: Counter[str] = Counter()
        for user in early + later:
            order = await side.show(user, crowd.orders[user])
            states[order["state"]] += 1
            if order["replaced_by"]:
                assert (await side.show(user, order["replaced_by"]))["state"] == "paid"
        assert states == {"expired": UNITS, "refunded": 6 - UNITS}
        await _check_money(stack)
        print(f"windows {stack.hits(WINDOWS)}")  # noqa: T201
        assert sum(stack.hits(WINDOWS).values()) > 0
        assert stack.stop() == 0


REFUND_WINDOWS = {
    "ledger.act.inside": 0.3,
    "api.ledger.act.after": 0.3,
    "keeper.provider.refund.before": 0.2,
    "keeper.provider.refund.after": 0.2,
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.timeout(1800)
async def test_refunds_of_operators_are_made_once_whatever_is_killed(folder: Path, database_url: str) -> None:
    """Each order is refunded in two parts. The operator repeats each request until it is answered."""
    failpoints = ",".join(f"{name}=kill:{chance}" for name, chance in REFUND_WINDOWS.items())
    stack = Stack(folder, database_url=database_url, settings={"SECKILL_CLAIM_IDLE_S": "1"})
    async with running(stack, SECKILL_FAILPOINTS=failpoints):
        crowd = Crowd(stack, await stack.create_sale(units=UNITS))
        side = PaymentSide(stack)
        users = [f"u{i}" for i in range(UNITS)]
        for user in users:
            await crowd.buy(user)
            assert (await side.notify(crowd.orders[user], f"of-{user}")).json()["state"] == "paid"
        parts: list[dict[str, Any]] = [{"amount_cents": 4000, "return_unit": False}, {"return_unit": True}]
        for part, wish in enumerate(parts):
            for user in users:
                answer = await side.refund(crowd.orders[user], f"{user}-{part}", wish)
                assert answer.status_code == 200, answer.text
        impatience = Impatience(stack, REFUND_WINDOWS)

        async def all_made() -> bool:
            await impatience.help()
            return not await rows(stack.settings.database_url, "SELECT id FROM refunds WHERE done_ms IS NULL")

        await until("all refunds are made", all_made)
        url = stack.settings.database_url
        made = await rows(url, "SELECT amount_cents FROM refunds")
        assert sorted(int(row[0]) for row in made) == [4000] * UNITS + [5900] * UNITS
        assert await rows(url, "SELECT DISTINCT state, refunded_cents FROM orders") == [("refunded", 9900)]
        async with stack.engine() as engine:
            await until_passed_on(engine)
            (sale,) = await engine.ledger.sales()
            view = await engine.gate.inspect(sale.round.ref)
        assert view is not None
        assert (view.available, view.released) == (UNITS, UNITS), "each unit is back, once"
        hits = stack.hits(REFUND_WINDOWS)
        print(f"windows {hits}")  # noqa: T201
        assert sum(hits.values()) > 0
        assert stack.stop() == 0


class Impatience:
    """Frees at once what a killed process had taken, instead of after a quarter or half of a minute."""

    def __init__(self, stack: Stack, windows: Collection[str] = WINDOWS) -> None:
        self._stack = stack
        self._windows = windows
        self._seen = 0

    async def help(self) -> None:
        killed = sum(self._stack.hits(self._windows).values())
        if killed > self._seen:
            for table in ("payments", "refunds"):
                await _write(self._stack, f"UPDATE {table} SET next_ms = 0 WHERE next_ms IS NOT NULL")
            self._seen = killed


async def _give_time(stack: Stack) -> None:
    await _write(stack, "UPDATE sales SET pay_within_s = 600")


async def _write(stack: Stack, statement: str) -> None:
    ledger = open_ledger(stack.settings.database_url)
    async with ledger.database.writers.begin() as connection:
        await connection.exec_driver_sql(statement)
    await ledger.close()


async def _check_money(stack: Stack) -> None:
    url = stack.settings.database_url
    async with stack.engine() as engine:
        await until_drained(engine)
        await until_passed_on(engine)
        (sale,) = await engine.ledger.sales()
        tally = await engine.ledger.tally(sale.round.id)
        view = await engine.gate.inspect(sale.round.ref)
    assert tally is not None
    assert view is not None
    assert (tally.paid, tally.unpaid, view.available) == (UNITS, 0, 0)
    assert (view.admitted, view.released) == (tally.recorded, tally.ended)
    ((taken, number),) = await rows(url, "SELECT sum(amount_cents), count(*) FROM payments")
    ((paid,),) = await rows(url, "SELECT sum(price_cents) FROM orders WHERE state = 'paid'")
    ((back,),) = await rows(url, "SELECT sum(amount_cents) FROM refunds")
    assert (int(taken), number) == (int(paid) + int(back), 6)
    assert await rows(url, "SELECT id FROM payments WHERE next_ms IS NOT NULL") == []
