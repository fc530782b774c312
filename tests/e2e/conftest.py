import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, for the sake of unix sockets."""
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Empty for the SQLite of the data folder."""
    if request.param == "sqlite":
        return ""
    return str(request.getfixturevalue(f"{request.param}_database"))
