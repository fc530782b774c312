"""Copies of a data folder: what they refuse. That a copy made under load is whole: tests/e2e/test_backup.py."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import redis
import redis.asyncio

from seckill.backends.redis import keys
from seckill.backends.sql.migration import migrate
from seckill.errors import StartError
from seckill.local import backup as backup_module
from seckill.local import gate_file as gate_file_module
from seckill.local.backup import GATE, MANIFEST_NAME, back_up
from seckill.local.data_folder import UNFINISHED, DataFolder
from seckill.local.gate_file import FOLDER, connected, gate_file
from seckill.local.restore import restore
from seckill.local.valkey import EmbeddedValkey

BASE, INCR = "appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof"


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A folder that no process uses, with everything that a backup copies."""
    with DataFolder.open(tmp_path / "data") as folder:
        folder.secrets()
    await migrate(f"sqlite:///{folder.path / 'ledger.db'}")
    files = folder.path / GATE
    files.mkdir(parents=True)
    (files / BASE).write_bytes(b"base")
    (files / INCR).write_bytes(b"commands")
    lines = [f"file {BASE} seq 1 type b", f"file {INCR} seq 1 type i"]
    (files / "appendonly.aof.manifest").write_text("file appendonly.aof.0.incr.aof seq 0 type h\n" + "\n".join(lines))
    return folder.path


@pytest.fixture
async def copy(data: Path, tmp_path: Path) -> Path:
    await back_up(data, tmp_path / "copy")
    return tmp_path / "copy"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_restored_is_what_was_copied_and_for_its_owner_alone(data: Path, copy: Path, tmp_path: Path) -> None:
    restore(copy, tmp_path / "again")
    found = contents(tmp_path / "again")
    assert found.pop("lock")
    copied = contents(copy)
    manifest = json.loads(copied.pop(MANIFEST_NAME))
    assert found == copied
    assert set(manifest["files"]) == set(copied)
    assert found["secrets.json"] == (data / "secrets.json").read_bytes()
    # Parts that only wait to be removed may be gone at any moment.
    assert "type h" not in found[f"{GATE}/appendonly.aof.manifest"].decode()
    for path in [*copy.rglob("*"), *(tmp_path / "again").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def remove(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


def alter(file: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = bytearray((folder / file).read_bytes())
        text[-1] ^= 1
        (folder / file).write_bytes(text)

    return change


def name_another(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST_NAME).read_text())
    manifest["files"]["../elsewhere"] = manifest["files"]["ledger.db"]
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest))


def of_later(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST_NAME).read_text()) | {"revision": "9999", "version": "9.9"}
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (remove("ledger.db"), "ledger.db is missing"),
        (remove(f"{GATE}/{INCR}"), f"{INCR} is missing"),
        (remove(MANIFEST_NAME), "it is no backup, or one that was not finished"),
        (alter("ledger.db"), "ledger.db is not what was backed up"),
        (alter("secrets.json"), "secrets.json is not what was backed up"),
        (alter(f"{GATE}/{BASE}"), f"{BASE} is not what was backed up"),
        (name_another, "names ../elsewhere, which no backup has"),
        (of_later, "was made by seckill 9.9: install that version or a later one"),
    ],
)
def test_a_broken_backup_is_refused_and_leaves_nothing(
    harm: Callable[[Path], None], says: str, copy: Path, tmp_path: Path
) -> None:
    harm(copy)
    with pytest.raises(StartError) as refused:
        restore(copy, tmp_path / "again")
    assert says in str(refused.value)
    assert str(refused.value).endswith(".")
    assert not (tmp_path / "again").exists()


def test_only_an_empty_folder_is_restored_into(data: Path, copy: Path, tmp_path: Path) -> None:
    before = contents(data)
    with pytest.raises(StartError, match="is not empty"):
        restore(copy, data)
    assert contents(data) == before
    with DataFolder.open(tmp_path / "used"):
        code = "import sys, pathlib; from seckill.local.restore import restore\n"
        code += "restore(*map(pathlib.Path, sys.argv[1:]))"
        other = [sys.executable, "-c", code, str(copy), str(tmp_path / "used")]
        said = subprocess.run(other, capture_output=True, text=True, check=False).stderr
        assert "is in use by another seckill" in said
    restore(copy, tmp_path / "used")  # a start that has left its lock file has left nothing


def test_nothing_starts_in_a_folder_that_was_half_restored(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        os._exit(9)

    if (pid := os.fork()) == 0:
        monkeypatch.setattr("seckill.local.restore.read_chunks", die)
        restore(copy, tmp_path / "again")
    os.waitpid(pid, 0)
    assert (tmp_path / "again" / UNFINISHED).exists()
    with pytest.raises(StartError, match="was interrupted: empty that folder, and restore again"):
        DataFolder.open(tmp_path / "again")


async def test_a_backup_that_fails_leaves_nothing(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup_module, "sync_folder", full)
    with pytest.raises(StartError, match=r"given up \(No space left on device\)"):
        await back_up(data, tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []
    monkeypatch.undo()
    await back_up(data, tmp_path / "copy")
    with pytest.raises(StartError, match="is not empty: choose a new folder for each backup"):
        await back_up(data, tmp_path / "copy")


async def test_a_file_that_is_rewritten_meanwhile_is_whole(tmp_path: Path) -> None:
    """The copy has everything that was answered before, whichever parts the server has begun and removed."""
    server = EmbeddedValkey(tmp_path / "a", durability="fast")
    await server.start()
    try:
        await server.ready()
        async with redis.asyncio.Redis.from_url(server.url) as client:
            for turn in range(4):
                await client.set(f"key {turn}", "x" * 100_000)
                if turn % 2:
                    with contextlib.suppress(redis.exceptions.ResponseError):  # the one before is still under way
                        await client.bgrewriteaof()
                async with gate_file(tmp_path / "a" / "valkey", client) as found:
                    (tmp_path / f"b{turn}" / "valkey" / FOLDER).mkdir(parents=True)
                    for part in found.parts:
                        path = tmp_path / f"b{turn}" / "valkey" / FOLDER / part.name
                        path.write_bytes(b"".join(part.chunks()))
                    (path.parent / "appendonly.aof.manifest").write_text(found.manifest)
    finally:
        await server.stop()
    shutil.rmtree(tmp_path / "a")
    for turn in range(4):
        again = EmbeddedValkey(tmp_path / f"b{turn}", durability="fast")
        await again.start()
        try:
            await again.ready()
            async with redis.asyncio.Redis.from_url(again.url) as client:
                assert await client.exists(*[f"key {n}" for n in range(turn + 1)]) == turn + 1
        finally:
            await again.stop()


async def test_a_copy_waits_for_what_the_server_has_not_written_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `fast`, a server that is busy with the disk answers first and writes to its file up to two seconds later.
    Here it is a file that lags behind, until it has been looked at three times."""
    home = tmp_path / "valkey"
    (home / FOLDER).mkdir(parents=True)
    (home / FOLDER / BASE).write_bytes(b"base")
    (home / FOLDER / "appendonly.aof.manifest").write_text(f"file {BASE} seq 1 type b\nfile {INCR} seq 1 type i\n")
    (home / FOLDER / INCR).write_bytes(b"")
    server = EmbeddedValkey(tmp_path / "a", durability="fast")
    await server.start()
    looks = 0
    manifest = gate_file_module._manifest

    def look(folder: Path) -> str:
        nonlocal looks
        looks += 1
        if looks == 3:
            with contextlib.closing(redis.Redis.from_url(server.url)) as client:
                (home / FOLDER / INCR).write_bytes(b"answered " + cast(bytes, client.get(keys.BACKUP)))
        return manifest(folder)

    monkeypatch.setattr(gate_file_module, "_manifest", look)
    try:
        await server.ready()
        async with connected(server.url) as client, gate_file(home, client) as found:
            assert found.parts[-1].size > len("answered")
    finally:
        await server.stop()
