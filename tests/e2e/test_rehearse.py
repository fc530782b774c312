"""`seckill rehearse` against a deployment of real processes: it leaves real sales alone and nothing behind."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seckill.client import AsyncClient
from seckill.client.documents import Sale
from seckill.errors import StartError
from seckill.lab.rehearsal.deployment import NEEDS, OperatorSite, is_marked
from seckill.lab.rehearsal.runner import RehearsalWanted, run
from seckill.local.tether import tethered
from seckill.settings import Secret
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S

SMALL = ("--for", "5", "--buyers", "400", "--senders", "1")
LONG = ("--for", "60", "--buyers", "20000", "--senders", "1", "--presses-only")  # which is cut off in the middle
PLAYS = b"presses a second"
REAL_PAYMENTS = {
    "SECKILL_PAYMENT_PROVIDER": "callback",
    "SECKILL_PAYMENT_SECRET": "Wq5xTz81LrVnB0mKs7Yd2HfGp9JcUe4A",
    "SECKILL_DEMO_SIGN_IN": "on",
}


def operator(stack: Stack) -> AsyncClient:
    key = stack.settings.admin_key
    assert key is not None
    return AsyncClient(stack.url, key.reveal(), within_s=PATIENCE_S)


@contextlib.asynccontextmanager
async def rehearsing(stack: Stack, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    command = tethered([sys.executable, "-m", "seckill", "rehearse", "--url", stack.url, *arguments])
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=stack.folder,
        env=inherited | {"SECKILL_DATA_DIR": str(stack.data)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def told(stack: Stack, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Returns exit code and document of a rehearsal that is held to its end."""
    async with rehearsing(stack, *arguments, "--json") as process, asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
        assert process.returncode is not None
        assert out, err
        return process.returncode, json.loads(out)


async def refusal(stack: Stack, *, beside_sales: bool = True, **settings: Any) -> str:
    """The sentence. Without a process of its own, which takes a second to start."""
    wanted = RehearsalWanted(url=stack.url, buyers=100, seconds=5, beside_sales=beside_sales)
    with pytest.raises(StartError) as refused:
        await run(wanted, replace(stack.settings, **settings), lambda _: None)
    return str(refused.value)


async def until_it_plays(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    heard = b""
    async with asyncio.timeout(PATIENCE_S):
        while PLAYS not in heard:
            line = await process.stderr.readline()
            assert line, heard
            heard = line


async def marked(stack: Stack) -> list[Sale]:
    async with operator(stack) as client:
        return [sale for sale in (await client.sales()).sales if is_marked(sale)]


async def buyers_see(stack: Stack) -> set[str]:
    async with AsyncClient(stack.url, within_s=PATIENCE_S) as anybody:
        return {sale.id for sale in (await anybody.sales()).sales}


async def refusals(stack: Stack, real: dict[str, Any]) -> None:
    """Each leaves no sale behind."""
    is_on = f'The sale "Phone" ({real["id"]}) is open: rehearse at another time, or with --beside-sales'
    assert is_on in await refusal(stack, beside_sales=False)
    assert "set SECKILL_ADMIN_KEY" in await refusal(stack, admin_key=Secret("x" * 32))
    assert "set SECKILL_ADMIN_KEY" in await refusal(stack, admin_key=None)
    assert NEEDS in await refusal(stack, jwt_secret=None)
    assert NEEDS in await refusal(stack, jwt_secret=Secret("g8Jq2Lw0Zr5Tn7Vx3Bc9Ym1Kp6Hd4Fs8Qa2"))
    async with operator(stack) as client:
        hook = await client.create_webhook("http://127.0.0.1:8443/hook")
        assert f"The webhook {hook.id} to {hook.url} would be told" in await refusal(stack)
        await client.delete_webhook(hook.id)
    assert await marked(stack) == []


async def test_a_rehearsal_beside_a_real_sale(folder: Path) -> None:
    async with running(Stack(folder, api=1)) as stack:
        real = await stack.create_sale()
        await refusals(stack, real)
        code, found = await told(stack, *SMALL, "--beside-sales", "--need", "1/s", "--out", "report")
        # On a machine that is busy with other things, nothing may go well.
        assert code == found["verdict"]["exit_code"]
        first = found["phases"][0]
        assert first["outcomes"]["accepted"] > 0
        busy = [phase["busy"] for phase in found["phases"]]
        assert any((each["api"] or 0) > 0 for each in busy), "what the process says of itself"
        assert any(each["gate"] is not None for each in busy)
        assert "seckill rehearse" in (stack.folder / "report" / "rehearsal.html").read_text()
        (sale,) = await marked(stack)
        assert (sale.id, sale.state, sale.published) == (found["after"]["sale_id"], "ended", False)
        assert (found["after"]["closed"], found["after"]["hidden"]) == (True, True)
        assert found["after"]["audit"] != "broken"
        assert sale.price_cents == 1, "where no money moves, buyers can pay"
        assert await buyers_see(stack) == {real["id"]}
        async with operator(stack) as client:
            assert (await client.custody(real["id"])).available == 100
            orders = [order async for order in client.all_orders()]
        assert 0 < len(orders) <= sum(phase["visits"] for phase in found["phases"]), (
            "repeats and bots get no second one"
        )
        assert {order.sale_id for order in orders} == {sale.id}
        assert all(order.buyer.startswith(str(sale.external_id)) for order in orders)


async def signs_in(stack: Stack) -> None:
    """Where any user may sign in, it needs no secret."""
    settings = replace(stack.settings, jwt_secret=None)
    assert settings.admin_key is not None
    site = OperatorSite(stack.url, settings.admin_key.reveal())
    try:
        deployment = await site.look()
        assert not deployment.no_money_moves, "a test, but the payment provider is real"
        tokens = await site.buyers_tokens(settings, deployment, "rehearsal-x", 30)
        assert (len(set(tokens.given)), tokens.secret) == (30, "")
    finally:
        await site.close()


async def test_an_interrupted_rehearsal_leaves_nothing_on_sale(folder: Path) -> None:
    async with running(Stack(folder, api=1, settings=REAL_PAYMENTS)) as stack:
        await signs_in(stack)
        async with rehearsing(stack, *LONG) as process:
            await until_it_plays(process)
            (sale,) = await marked(stack)
            assert sale.state == "open"
            assert sale.price_cents == 0, "real money is taken here, so it is free"
            assert sale.audience is not None, "no real buyer gets in"
            assert await buyers_see(stack) == {sale.id}
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(PATIENCE_S):
                await process.communicate()
        assert process.returncode == 130
        (sale,) = await marked(stack)
        assert (sale.state, sale.published) == ("ended", False)
        assert await buyers_see(stack) == set()

        # One that is killed cannot clean up: the next one says so, and hides what has ended.
        async with rehearsing(stack, *LONG) as process:
            await until_it_plays(process)
        (left,) = [sale for sale in await marked(stack) if sale.state == "open"]
        assert f"seckill sale close {left.id}" in await refusal(stack)
        async with operator(stack) as client:
            await client.close_sale(left.id)
        async with rehearsing(stack, *LONG) as process:
            await until_it_plays(process)
            assert left.id not in await buyers_see(stack)
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                await process.communicate()
        assert {(sale.state, sale.published) for sale in await marked(stack)} == {("ended", False)}
