"""A draw as a newcomer tries it: commands only, simulated people, and everything checked by what is published."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seckill.errors import StartError
from seckill.lab.line_crowd import CrowdWanted, join_and_pay
from seckill.local.tether import tethered
from tests.e2e.checks import check_audit, until_drained
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S, STORY_PATIENCE_S

UNITS = 10
PEOPLE = 150
REAL_PAYMENTS = {
    "SECKILL_PAYMENT_PROVIDER": "callback",
    "SECKILL_PAYMENT_SECRET": "Wq5xTz81LrVnB0mKs7Yd2HfGp9JcUe4A",
}


async def seckill(stack: Stack, *arguments: str) -> tuple[int, str]:
    """Exit code, and what it prints."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    process = await asyncio.create_subprocess_exec(
        *tethered([sys.executable, "-m", "seckill", *arguments]),
        cwd=stack.folder,
        env=inherited | {"SECKILL_DATA_DIR": str(stack.data)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(STORY_PATIENCE_S):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode()


@pytest.mark.timeout(900)
async def test_a_newcomer_tries_a_draw_with_commands_alone(folder: Path) -> None:
    async with running(Stack(folder)) as stack, httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        create = ("sale", "create", "Sneakers", "--order", "draw", "--begins", "+1h", "--units", str(UNITS))
        code, told = await seckill(stack, *create, "--price-cents", "9900", "--pay-within", "8", "--json")
        assert code == 0
        sale = json.loads(told)["id"]
        crowd = ("line", "crowd", sale, "--people", str(PEOPLE), "--paying", "50", "--json")
        living = asyncio.create_task(seckill(stack, *crowd))
        await _until(http, sale, "waiting", PEOPLE)
        body = {"begins_at": datetime.now(UTC).isoformat()}
        await http.patch(f"/v1/sales/{sale}", json=body, headers=_operator(stack))
        code, told = await living
        seen = json.loads(told)
        assert (code, seen["answers"]) == (0, {"joined": PEOPLE})
        assert seen["paid"] == UNITS, "what was not paid for went down the line until everything was"
        assert seen["served"] == UNITS + seen["not_paid"] + sum(seen["unpayable"].values())
        assert seen["ends"] == {"sold_out": PEOPLE - seen["served"]}
        code, told = await seckill(stack, "verify-draw", f"{stack.url}/sales/{sale}", "--json")
        assert (code, json.loads(told)["entries"]) == (0, PEOPLE)
        story: dict[str, Any] = (await http.get(f"/v1/sales/{sale}/story")).json()
        assert (story["units_given"], story["resold"]) == (seen["served"], seen["served"] - UNITS)
        async with stack.engine() as engine:
            await until_drained(engine)
            await check_audit(engine)


async def test_simulated_people_take_no_place_of_real_ones(folder: Path) -> None:
    """Where money moves, no simulated people join."""
    async with running(Stack(folder, api=1, settings=REAL_PAYMENTS)) as stack:
        sale = await stack.create_sale(order="arrival")
        wanted = CrowdWanted(url=stack.url, sale_id=sale["id"], people=5)
        with pytest.raises(StartError, match="Real buyers use this deployment"):
            await join_and_pay(wanted, stack.settings, lambda _: None)
        with pytest.raises(StartError, match="There is no admin key"):
            await join_and_pay(wanted, replace(stack.settings, admin_key=None), lambda _: None)
        async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
            await _until(http, sale["id"], "waiting", 0)


async def test_who_could_not_join_is_counted_by_the_reason(folder: Path) -> None:
    async with running(Stack(folder, api=1)) as stack:
        sale = await stack.create_sale()
        code, told = await seckill(stack, "line", "crowd", sale["id"], "--people", "3")
        assert code == 1
        assert "no_line" in told


def _operator(stack: Stack) -> dict[str, str]:
    key = stack.settings.admin_key
    assert key is not None
    return {"Authorization": f"Bearer {key.reveal()}"}


async def _until(http: httpx2.AsyncClient, sale: str, name: str, value: int) -> None:
    async with asyncio.timeout(STORY_PATIENCE_S):
        while (await http.get(f"/v1/sales/{sale}/line")).json()[name] != value:
            await asyncio.sleep(0.1)
