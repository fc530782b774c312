import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seckill.local import fork_server
from seckill.local.supervisor import Process
from tests.local.processes import cleared, eventually, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")


@contextlib.contextmanager
def owner(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    command = [sys.executable, "-m", "tests.local.copying", *words]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process, cleared(process.pid):
        yield process


def lines(process: subprocess.Popen[str], count: int) -> list[Any]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def find(said: list[Any], key: str) -> list[Any]:
    return [line for line in said if isinstance(line, dict) and key in line]


def test_a_copy_is_a_process_of_its_own(tmp_path: Path) -> None:
    with owner(tmp_path, "look", "socket") as process:
        said = lines(process, 5)
        assert process.wait() == 0
    plain, listening = sorted(find(said, "command"), key=lambda each: each["command"])
    for copy in (plain, listening):
        assert copy["parent"] == process.pid, "its owner waits for it, and it dies with its owner"
        assert copy["session"] == copy["pid"], "Ctrl-C is its owner's business"
        assert copy["stdin"] == "/dev/null"
        assert copy["loaded"] == ["given", "loaded", "released"]
        assert (copy["threads"], copy["running"], copy["loops"]) == (1, False, True)
        assert copy["seen_before"] == 0, "its figures are not its owner's"
        assert (tmp_path / f"counter_{copy['pid']}.db").exists()
    assert plain["random"] != listening["random"], "no two of them draw the same"
    assert (plain["command"], listening["command"]) == (["seckill", "look"], ["seckill", "socket"])
    assert plain["listening"] == []
    assert listening["listening"] == listening["given"] != []


def test_the_exit_code_comes_through(tmp_path: Path) -> None:
    with owner(tmp_path, "7", "wait") as process:
        said = lines(process, 3)
        (made,) = find(said, "copies")
        os.kill(made["copies"][1], signal.SIGKILL)
        said += lines(process, 1)
        assert {line["ended"]: line["code"] for line in find(said, "ended")} == dict(
            zip(made["copies"], [7, -signal.SIGKILL], strict=True)
        )


def test_copies_and_server_die_with_a_killed_owner(tmp_path: Path) -> None:
    with owner(tmp_path, "wait", "wait") as process:
        (made,) = find(lines(process, 3), "copies")
        pids = [made["server"], *made["copies"]]
        assert all(map(running, pids))
        process.kill()
        assert eventually(lambda: not any(map(running, pids)))


def test_copies_outlive_the_server(tmp_path: Path) -> None:
    with owner(tmp_path, "wait") as process:
        (made,) = find(lines(process, 2), "copies")
        os.kill(made["server"], signal.SIGKILL)
        assert eventually(lambda: not running(made["server"]))
        (pid,) = made["copies"]
        os.kill(pid, signal.SIGTERM)
        assert lines(process, 1) == [{"ended": pid, "code": -signal.SIGTERM}], "it was there until now"


def test_where_the_kernel_cannot_do_it_there_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with fork_server.fork_server(dict, dict, list, {}) as server:
        assert server is None


class Broken(fork_server.ForkServer):
    def __init__(self) -> None:
        self._orders = None


async def test_without_a_server_a_role_is_started_anew() -> None:
    process = Process("version", ["--version"], os.environ, copies=Broken())
    await process.start()
    assert await process.wait() == 0
