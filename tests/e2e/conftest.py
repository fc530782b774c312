import gc
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from seckill.cli import main


class Command(Protocol):
    def __call__(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]: ...


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


@pytest.fixture
def command(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`seckill …` without a process of its own, which takes a second to start. For what ends before it starts anything:
    calls to the API, tokens, refusals."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(sys, "argv", ["seckill", *arguments])
            for name, value in environ.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
            gc.enable()  # a command's own process has no need of it
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(arguments, ended.value.code, said.out, said.err)

    return run
