import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from seckill.backends.sql import make_ahead, open_ledger
from seckill.errors import StartError
from tests.backends.sql.looking import names


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+aiosqlite"])
async def test_addresses_of_sqlite(scheme: str, sqlite_database: str) -> None:
    ledger = open_ledger(sqlite_database.replace("sqlite:", f"{scheme}:"))
    await ledger.ping()
    await ledger.close()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
@pytest.mark.parametrize("more", ["", "?sslmode=prefer", "?sslmode=disable&application_name=mine"])
async def test_addresses_of_postgres_as_psql_understands_them(scheme: str, more: str, postgres_database: str) -> None:
    ledger = open_ledger(postgres_database.replace("postgresql:", f"{scheme}:") + more)
    await ledger.ping()
    await ledger.close()


async def test_a_ledger_made_ahead_is_given_to_the_first_who_opens_it(ledger_url: str, tmp_path: Path) -> None:
    """Processes that were copied after it was made do so: the connections that each opens, uses and closes are its
    own."""
    make_ahead(ledger_url)
    other = open_ledger(f"sqlite:///{tmp_path}/other.db")
    first, second = open_ledger(ledger_url), open_ledger(ledger_url)
    assert len({id(each.database) for each in (first, second, other)}) == 3
    assert (await first.id_key()) == (await second.id_key())
    await first.close()
    await second.ping()
    for each in (second, other):
        await each.close()


async def test_a_path_relative_to_where_we_are(
    sqlite_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = open_ledger("sqlite:///ledger.db")
    monkeypatch.chdir("/")
    await ledger.id_key()
    await ledger.close()


async def test_a_path_with_everything_in_it(tmp_path: Path, sqlite_template: Path) -> None:
    folder = tmp_path / "a b%20c#d?e=f"
    folder.mkdir()
    shutil.copy(sqlite_template, folder / "x y.db")
    ledger = open_ledger(f"sqlite:///{quote(str(folder))}/x y.db")
    assert len(await ledger.id_key()) == 32
    await ledger.close()
    assert names(folder) == {"x y.db", "x y.db.writer"}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sqlite://", "plain file"),
        ("sqlite:///:memory:", "plain file"),
        ("sqlite+aiosqlite:///:memory:", "plain file"),
        ("sqlite:///file:x?mode=memory&uri=true", "plain file"),
        ("sqlite:////tmp/x.db?cache=shared", "plain file"),
        ("sqlite:////no/such/folder/x.db", "does not exist"),
        ("oracle://scott:tiger@localhost/x", "no ledger for oracle"),
        ("redis://localhost", "no ledger for redis"),
        ("postgresql://scott:tiger@host:notaport/x", "cannot be read"),
        ("", "cannot be read"),
        ("just words", "cannot be read"),
    ],
)
def test_addresses_that_cannot_be_meant(url: str, told: str) -> None:
    with pytest.raises(StartError, match=told) as refused:
        open_ledger(url)
    assert "tiger" not in str(refused.value)
    assert "\n" not in str(refused.value)
