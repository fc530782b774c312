import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import redis
import redis.exceptions
from redis.asyncio import Redis

from seckill.errors import StartError
from seckill.local import valkey
from seckill.local.valkey import EmbeddedValkey
from tests.fixtures.valkey import OwnValkey
from tests.local.processes import cleared, eventually, running
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """pytest's own `tmp_path` may be too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="sk") as folder:
        yield Path(folder)


@contextmanager
def owner(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, "-m", "tests.local.owner", str(data_dir)]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


@asynccontextmanager
async def started(data_dir: Path) -> AsyncIterator[EmbeddedValkey]:
    server = EmbeddedValkey(data_dir, durability="strict")
    await server.start()
    try:
        await server.ready()
        yield server
    finally:
        await server.stop()


async def kill(server: EmbeddedValkey) -> None:
    os.killpg(server.pid, signal.SIGKILL)
    await server.wait()


def incremental_file(data_dir: Path) -> Path:
    (file,) = (data_dir / "valkey" / "appendonlydir").glob("*.incr.aof")
    return file


def data_dir_of(server: EmbeddedValkey) -> Path:
    return server.log.parents[1]


def test_killing_the_owner_takes_the_server_along(short_path: Path) -> None:
    with owner(short_path) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert running(pid)
        process.kill()
    with cleared(pid):
        assert eventually(lambda: not running(pid))


def test_ctrl_c_reaches_the_owner_but_not_the_server(short_path: Path) -> None:
    with owner(short_path) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert os.getpgid(pid) != process.pid
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "True\n"
        assert process.wait(PATIENCE_S) == 0
    assert not running(pid)


@pytest.mark.parametrize(("durability", "fsync"), [("strict", "always"), ("fast", "everysec")])
async def test_it_runs_with_the_promised_options(
    own_valkey: OwnValkey, durability: valkey.Durability, fsync: str
) -> None:
    server = await own_valkey(durability=durability)
    async with Redis.from_url(server.url, decode_responses=True) as client:
        found = await client.config_get("*")
    assert {name: found[name] for name in ("appendonly", "appendfsync", "save", "maxmemory-policy", "port")} == {
        "appendonly": "yes",
        "appendfsync": fsync,
        "save": "",
        "maxmemory-policy": "noeviction",
        "port": "0",
    }
    assert found["enable-debug-command"] == "no"
    assert found["aof-load-truncated"] == "yes"
    assert found["no-appendfsync-on-rewrite"] == "no"


async def test_others_can_reach_neither_socket_nor_data(own_valkey: OwnValkey) -> None:
    server = await own_valkey()
    data_dir = data_dir_of(server)
    for path in (data_dir / "valkey.sock", data_dir / "valkey", incremental_file(data_dir)):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_what_was_acknowledged_is_there_after_a_kill(own_valkey: OwnValkey) -> None:
    server = await own_valkey()
    async with Redis.from_url(server.url) as client:
        for number in range(100):
            await client.rpush("numbers", number)
        await client.function_load("#!lua name=kept\nredis.register_function('kept', function() return 1 end)")
    await kill(server)
    await server.start()
    await server.ready()
    async with Redis.from_url(server.url, decode_responses=True) as client:
        assert await client.lrange("numbers", 0, -1) == [str(number) for number in range(100)]
        assert await client.fcall("kept", 0) == 1


async def test_a_tail_that_was_cut_off_loses_the_last_write_only(own_valkey: OwnValkey) -> None:
    server = await own_valkey()
    async with Redis.from_url(server.url) as client:
        await client.set("a", "1")
        await client.eval("redis.call('SET', 'b', 1) redis.call('SET', 'c', 1)", 2, "b", "c")
    await kill(server)
    file = incremental_file(data_dir_of(server))
    os.truncate(file, file.stat().st_size - 3)
    await server.start()
    await server.ready()
    async with Redis.from_url(server.url, decode_responses=True) as client:
        assert await client.keys() == ["a"]


async def test_a_damaged_file_is_told_with_the_last_words_of_the_server(own_valkey: OwnValkey) -> None:
    server = await own_valkey()
    async with Redis.from_url(server.url) as client:
        await client.set("a", "1")
    await server.stop()
    with incremental_file(data_dir_of(server)).open("r+b") as file:
        file.write(b"nonsense")
    await server.start()
    with pytest.raises(StartError, match=r"^The embedded server ended at its start with “.*Bad file format.*”: see"):
        await server.ready()
    assert await server.wait() == 1


async def test_a_server_that_says_nothing_is_told_with_its_exit_code(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = short_path / "redis-server"
    silent.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Redis server v=7.0.0" && exit\nexit 3\n')
    silent.chmod(0o755)
    monkeypatch.setattr(valkey, "find_server", lambda: silent)
    server = EmbeddedValkey(short_path / "data", durability="strict")
    await server.start()
    with pytest.raises(StartError, match="“exit code 3”"):
        await server.ready()


async def test_a_server_that_never_answers_is_given_up_and_stopped(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not heed SIGTERM either: stop() has to kill it."""
    deaf = short_path / "redis-server"
    deaf.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --version ] && echo "Redis server v=7.0.0" && exit\n'
        f"trap '' TERM\ntouch {short_path}/deaf\nwhile :; do sleep 0.1; done\n"
    )
    deaf.chmod(0o755)
    monkeypatch.setattr(valkey, "find_server", lambda: deaf)
    server = EmbeddedValkey(short_path / "data", durability="strict")
    await server.start()
    assert await asyncio.to_thread(eventually, (short_path / "deaf").exists)
    with pytest.raises(StartError, match=r"was not ready within 0\.1 s: see .*server\.log for why\.$"):
        await server.ready(within_s=0.1)
    await server.stop(within_s=0.1)
    assert await server.wait() == -signal.SIGKILL


async def test_ready_waits_until_everything_is_loaded(own_valkey: OwnValkey) -> None:
    server = await own_valkey()
    async with Redis.from_url(server.url) as client:
        await client.set("a", "0")
    await server.stop()
    times = 1_000_000
    with incremental_file(data_dir_of(server)).open("ab") as file:
        file.write(b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n" * times)
    await server.start()
    assert await asyncio.to_thread(eventually, lambda: loading(server.url)), "the file was too small to see it"
    await server.ready()
    async with Redis.from_url(server.url, decode_responses=True) as client:
        assert await client.get("a") == str(times)


def loading(url: str) -> bool:
    with redis.Redis.from_url(url) as client:
        try:
            client.ping()
        except redis.exceptions.BusyLoadingError:
            return True
        except redis.exceptions.ConnectionError:
            return False
    raise AssertionError("loaded before the test could look")


async def test_the_socket_of_a_dead_server_is_no_hindrance(short_path: Path) -> None:
    async with started(short_path) as server:
        await kill(server)
        assert (short_path / "valkey.sock").is_socket()
        async with started(short_path) as following:
            assert following.pid != server.pid
    assert not (short_path / "valkey.sock").exists()


async def test_a_live_server_on_the_same_folder_is_never_joined_by_another(
    own_valkey: OwnValkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await own_valkey()
    monkeypatch.setattr(valkey, "EARLIER_GONE_WITHIN_S", 0.1)
    second = EmbeddedValkey(data_dir_of(first), durability="strict")
    with pytest.raises(StartError, match=r"^A server of an earlier start still listens on .*: stop it, or"):
        await second.start()
    await second.stop()
    async with Redis.from_url(first.url) as client:
        assert await client.ping()


async def test_a_server_that_is_just_going_is_waited_for(own_valkey: OwnValkey) -> None:
    first = await own_valkey()
    second = EmbeddedValkey(data_dir_of(first), durability="strict")
    starting = asyncio.create_task(second.start())
    try:
        await kill(first)
        await starting
        await second.ready()
    finally:
        await second.stop()


async def test_a_data_path_that_is_too_long_for_a_socket(short_path: Path) -> None:
    data_dir = short_path / ("x" * 120)
    async with started(data_dir) as server:
        folder = Path(server.url.removeprefix("unix://")).parent
        assert folder.parent == Path(tempfile.gettempdir())
        assert folder.stat().st_mode & 0o777 == 0o700
        await kill(server)
        async with started(data_dir) as following:
            assert following.url == server.url
    assert not folder.exists()


async def test_a_socket_folder_prepared_by_another_user_is_refused(short_path: Path) -> None:
    server = EmbeddedValkey(short_path / ("x" * 120), durability="strict")
    folder = Path(server.url.removeprefix("unix://")).parent
    folder.mkdir()
    folder.chmod(0o777)
    try:
        with pytest.raises(StartError, match="others could get at it"):
            await server.start()
    finally:
        folder.rmdir()


async def test_a_data_path_with_every_kind_of_character(short_path: Path) -> None:
    async with started(short_path / "a b'\"#?%20é\\秒") as server, Redis.from_url(server.url) as client:
        assert await client.set("a", "1")


async def test_a_relative_data_path(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(short_path)
    async with started(Path("data")) as server:
        monkeypatch.chdir("/")
        async with Redis.from_url(server.url) as client:
            assert await client.ping()
    assert (short_path / "data" / "valkey" / "appendonlydir").is_dir()


async def test_a_data_path_that_cannot_be_used_is_one_sentence(short_path: Path) -> None:
    (short_path / "data").touch()
    with pytest.raises(StartError, match=r"cannot use .*/data/valkey \(.*\): mend that, or .*--data\.$"):
        await EmbeddedValkey(short_path / "data", durability="strict").start()


async def test_stop_is_clean_and_may_be_repeated(own_valkey: OwnValkey) -> None:
    server = await own_valkey()
    pid = server.pid
    await server.stop()
    assert await server.wait() == 0
    assert not running(pid)
    await server.stop()


async def test_starting_twice_is_a_mistake(own_valkey: OwnValkey) -> None:
    server = await own_valkey()
    with pytest.raises(RuntimeError, match="running already"):
        await server.start()


async def test_asking_before_the_start_is_a_mistake(short_path: Path) -> None:
    server = EmbeddedValkey(short_path, durability="strict")
    with pytest.raises(RuntimeError, match="not been started"):
        await server.wait()
    await server.stop()


def test_the_fixture_is_ours_and_not_the_wheel_s(valkey_url: str) -> None:
    """The wheel brings a pytest plugin with a fixture of the same name, whose server keeps nothing."""
    assert valkey_url.startswith("unix:///")


def test_the_server_of_the_run_is_left_dirty(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set("left", "behind")
        client.script_load("return 1")


async def test_a_server_of_the_tests_is_empty_for_the_next_test(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as client:
        assert await client.dbsize() == 0
        assert await client.script_exists("e0e1f9fabfc9d4800c877a703b823ac0578ff8db") == [False]
