"""Commands that only read: they can be broken off, and say what is wrong with an address."""

import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from seckill.cli.exit_codes import EXIT_INTERRUPTED
from tests.cli.test_command_line import seckill
from tests.patience import PATIENCE_S


@pytest.mark.parametrize("command", [["audit"], ["audit", "--watch"], ["repair"]])
def test_the_first_signal_ends_what_only_reads(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a gate that takes the call and says nothing."""
    monkeypatch.setenv("SECKILL_DATABASE_URL", f"sqlite:///{tmp_path}/ledger.db")
    assert seckill(monkeypatch, "migrate") in (None, 0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("SECKILL_REDIS_URL", f"redis://127.0.0.1:{silent.getsockname()[1]}/0")

        def signal_once_called() -> None:
            called, _ = silent.accept()
            with called:
                called.recv(1)
                os.kill(os.getpid(), signal.SIGTERM)
                while called.recv(4096):
                    pass

        thread = threading.Thread(target=signal_once_called)
        thread.start()
        assert seckill(monkeypatch, *command) == EXIT_INTERRUPTED
        thread.join(timeout=PATIENCE_S)


@pytest.mark.parametrize("command", ["audit", "repair"])
@pytest.mark.parametrize(
    "url",
    ["redis://127.0.0.1:1/0?nope=1", "redis+cluster://127.0.0.1:1?nope=1", "redis+sentinel://127.0.0.1:1/a?nope=1"],
)
def test_a_parameter_that_no_address_has_is_one_sentence(
    command: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SECKILL_DATABASE_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("SECKILL_REDIS_URL", url)
    assert seckill(monkeypatch, "migrate") in (None, 0)
    capsys.readouterr()
    assert seckill(monkeypatch, command) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("seckill: SECKILL_REDIS_URL cannot be understood (")
    assert "nope" in said.err
    assert said.err.count("\n") == 1
