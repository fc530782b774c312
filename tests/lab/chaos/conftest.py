import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, for the sake of unix sockets, and open on the way to it, for a PostgreSQL that is another user."""
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)
