"""A shop that gives its goods away by mistake: a role on its own does not start unless the operator has said that it is
a test, and then every visitor is told."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import httpx2
import pytest

from seckill.backends.payment.provider_choice import open_provider
from seckill.errors import SettingsError
from seckill.lab.servers.ports import free_port
from seckill.local.tether import tethered
from seckill.operations.production_refusals import refuse_make_believe
from seckill.ports.payment import Notice, Refund
from seckill.settings import Settings
from tests.e2e.conftest import Command
from tests.e2e.stack import Stack, running
from tests.e2e.test_up import production, seckill

SANDBOX = (
    "seckill: The payment provider is a sandbox, which gives goods away: set SECKILL_PAYMENT_PROVIDER to "
    "`stripe`, `alipay`, `wechat`, `callback` or a factory of yours, or SECKILL_REHEARSAL=on if this is a test.\n"
)
REAL = {
    "SECKILL_PAYMENT_PROVIDER": "callback",
    "SECKILL_PAYMENT_SECRET": "Wq5xTz81LrVnB0mKs7Yd2HfGp9JcUe4A",
    "SECKILL_REHEARSAL": "off",
}


@pytest.mark.parametrize("role", ["api", "worker", "keeper"])
def test_a_role_on_its_own_does_not_give_goods_away(
    folder: Path, redis_url: str, sqlite_database: str, role: str
) -> None:
    environ = production(redis_url, sqlite_database) | {"SECKILL_REHEARSAL": "off"}
    done = seckill(role, cwd=folder, **environ)
    assert (done.returncode, done.stderr) == (2, SANDBOX)


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("SECKILL_DEMO_SIGN_IN", "on", "Anybody may sign in under any name: set SECKILL_DEMO_SIGN_IN=off"),
        (
            "SECKILL_FAILPOINTS",
            "api.gate.admit.before=kill:0",
            "Failpoints make processes break on purpose: set SECKILL_FAILPOINTS to nothing",
        ),
    ],
)
def test_nor_does_it_let_anybody_in_or_break_on_purpose(
    folder: Path, redis_url: str, sqlite_database: str, setting: str, value: str, sentence: str
) -> None:
    environ = production(redis_url, sqlite_database) | REAL | {setting: value}
    done = seckill("api", cwd=folder, **environ)
    assert done.returncode == 2
    assert done.stderr == f"seckill: {sentence}, or SECKILL_REHEARSAL=on if this is a test.\n"


class Pretended:
    """A shop's own provider that says of itself that no money moves."""

    name: ClassVar = "pretended"
    sandbox: ClassVar = True

    def read(self, *_: object) -> Notice:
        raise AssertionError

    async def refund(self, refund: Refund, order_id: str) -> bool:
        raise AssertionError


def pretend(_: Settings) -> Pretended:
    return Pretended()


def test_a_sandbox_of_the_shops_own_is_one_as_well() -> None:
    settings = Settings(payment_provider=f"{__name__}:pretend")
    with pytest.raises(SettingsError, match="gives goods away"):
        refuse_make_believe(settings, open_provider(settings))


@pytest.mark.parametrize(
    ("environ", "rehearsal", "told"),
    [({}, "on", "free"), (REAL | {"SECKILL_REHEARSAL": "on"}, "on", "paid"), (REAL, "off", "")],
    ids=["sandbox", "real-money", "shop"],
)
async def test_a_test_says_so_everywhere(
    folder: Path, redis_url: str, sqlite_database: str, environ: dict[str, str], rehearsal: str, told: str
) -> None:
    port = free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    settings = inherited | production(redis_url, sqlite_database) | environ
    command = tethered([sys.executable, "-m", "seckill", "api", "--port", str(port)])
    with subprocess.Popen(command, cwd=folder, env=settings, start_new_session=True) as api:
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
                while True:
                    try:
                        if (await http.get("/readyz")).status_code == 200:
                            break
                    except httpx2.HTTPError:
                        assert api.poll() is None, "it has not started"
                        await asyncio.sleep(0.05)
                assert (await http.get("/version")).json()["rehearsal"] == rehearsal
                for page in ("/", "/console"):
                    assert f'<meta name="seckill-test" content="{told}">' in (await http.get(page)).text
        finally:
            api.terminate()


@pytest.mark.parametrize(
    ("environ", "code", "line"),
    [
        ({"SECKILL_REHEARSAL": "off"}, 1, "mend  rehearsal: The payment provider is a sandbox, which gives goods away"),
        ({}, 0, "note  rehearsal: The payment provider is a sandbox, which gives goods away"),
        (REAL, 0, "ok    rehearsal: off, and nothing here is make-believe"),
    ],
    ids=["mistaken", "test", "shop"],
)
def test_the_doctor_names_it(
    command: Command, redis_url: str, sqlite_database: str, environ: dict[str, str], code: int, line: str
) -> None:
    done = command("doctor", **production(redis_url, sqlite_database) | {"COLUMNS": "300"} | environ)
    assert line in done.stdout, done.stdout
    assert done.returncode == code


async def test_up_is_for_trying_things_out_and_says_so(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with running(stack), httpx2.AsyncClient(base_url=stack.url) as http:
        assert (await http.get("/version")).json()["rehearsal"] == "on"
        assert 'seckill-test" content="free"' in (await http.get("/")).text
        while not stack.logged("a sandbox for trying things out: no money moves"):
            assert stack.process.poll() is None
            await asyncio.sleep(0.05)
