"""A copy of a data folder, made while it is in use: ledger, gate and secrets as they were at one moment.

The ledger decides and the gate counts, so copies of two different moments would contradict each other: an order would
be gone from the queue and not be in the ledger yet, or be in the ledger and not be counted. So for as long as it
takes to note where both files end, no process writes to the ledger. What the gate has handed over by then is in
the ledger's copy, and what is still queued is in the gate's: together they are what a power cut at that moment would
have left, and a start afterwards goes on from there.

The manifest is written last. A folder without one is no backup.
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from seckill import __version__
from seckill.backends.sql.database_choice import open_database
from seckill.backends.sql.schema import REVISIONS
from seckill.backends.sql.sqlite_writer_lock import ReadingConnection
from seckill.backends.sql.transactions import writing
from seckill.errors import StartError
from seckill.local.data_folder import DataFolder, read_secrets
from seckill.local.gate_file import FOLDER, MANIFEST, GateFile, connected, gate_file
from seckill.local.valkey import EmbeddedValkey

FORMAT = 1
MANIFEST_NAME = "backup.json"
LEDGER = "ledger.db"
SECRETS = "secrets.json"
GATE_HOME = "valkey"
GATE = f"{GATE_HOME}/{FOLDER}"
PAGES_AT_ONCE = 2000


class CopiedFile(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    version: str
    revision: str
    made_at: str
    orders: int  # in the ledger; those that were only queued are in the gate's file
    files: dict[str, CopiedFile]


async def back_up(source: Path, target: Path) -> tuple[BackupManifest, float]:
    """Makes a backup, and also returns for how many seconds no one could write to the ledger. The backup is either
    complete or removed again."""
    if not (source / LEDGER).is_file():
        raise StartError(f"{source} has no {LEDGER}: name the folder of `seckill up` with --data.")
    _make(target)
    try:
        async with _moment(source) as (snapshot, gate, held_s):
            copying = asyncio.ensure_future(asyncio.to_thread(_copy, source, target, snapshot, gate))
            try:
                manifest = await asyncio.shield(copying)
            except asyncio.CancelledError:
                await asyncio.wait({copying})  # a thread cannot be stopped: what it writes is cleared afterwards
                raise
    except BaseException as error:
        _clear(target)
        if isinstance(error, OSError | sqlite3.Error):
            reason = getattr(error, "strerror", None) or error
            raise StartError(f"The backup to {target} was given up ({reason}): mend that, and try again.") from error
        raise
    return manifest, held_s


@asynccontextmanager
async def _moment(source: Path) -> AsyncIterator[tuple[sqlite3.Connection, GateFile, float]]:
    """Yields the ledger and the gate's file as they are at the same moment, and for how long the ledger was held."""
    valkey = EmbeddedValkey(source, durability="strict")
    with ExitStack() as stack:
        url: str | None = valkey.url
        with contextlib.suppress(StartError):  # then a process has it open
            stack.enter_context(DataFolder.open(source))
            url = None
        database = open_database(f"sqlite:///{source / LEDGER}")
        snapshot = stack.enter_context(contextlib.closing(_connect(source / LEDGER)))
        async with contextlib.AsyncExitStack() as open_:
            open_.push_async_callback(database.close)
            client = await open_.enter_async_context(connected(url))
            async with writing(database):
                since_s = time.monotonic()
                snapshot.execute("BEGIN")
                snapshot.execute("SELECT count(*) FROM meta").fetchone()  # from here on it sees this moment
                gate = await open_.enter_async_context(gate_file(source / GATE_HOME, client))
            yield snapshot, gate, time.monotonic() - since_s


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, factory=ReadingConnection
    )


def _copy(source: Path, target: Path, snapshot: sqlite3.Connection, gate: GateFile) -> BackupManifest:
    orders, revision = _copy_ledger(snapshot, target / LEDGER)
    files = {LEDGER: _digest(target / LEDGER)}
    read_secrets(source)  # damaged secrets would be of no use
    with (source / SECRETS).open("rb") as stream:
        files[SECRETS] = write_file(target / SECRETS, iter(lambda: stream.read(1 << 16), b""))
    for folder in (target / GATE_HOME, target / GATE):
        folder.mkdir(mode=0o700)
    for part in gate.parts:
        name = f"{GATE}/{part.name}"
        files[name] = write_file(target / name, part.chunks())
        if files[name].size != part.size:
            raise StartError(f"{part.name} has become shorter while it was read: see the server's log for why.")
    files[f"{GATE}/{MANIFEST}"] = write_file(target / GATE / MANIFEST, [gate.manifest.encode()])
    manifest = BackupManifest(
        format=FORMAT,
        version=__version__,
        revision=revision,
        made_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        orders=orders,
        files=files,
    )
    for folder in (target / GATE, target / GATE_HOME, target):
        sync_folder(folder)
    draft = target / f"{MANIFEST_NAME}.new"
    write_file(draft, [msgspec.json.format(msgspec.json.encode(manifest), indent=1), b"\n"])
    draft.rename(target / MANIFEST_NAME)
    sync_folder(target)
    return manifest


def _copy_ledger(snapshot: sqlite3.Connection, path: Path) -> tuple[int, str]:
    """Copies the ledger into one file and has SQLite check it. Returns the number of orders, and the revision."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy:
        snapshot.backup(copy, pages=PAGES_AT_ONCE, sleep=0)
        copy.execute("PRAGMA journal_mode = DELETE")
        (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StartError(f"The ledger is damaged ({verdict}): see docs/operations.md before anything else.")
        (orders,) = copy.execute("SELECT count(*) FROM orders").fetchone()
        (revision,) = copy.execute("SELECT version_num FROM alembic_version").fetchone()
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
    return int(orders), str(revision)


def check_backup(source: Path) -> BackupManifest:
    """Checks that every file is as it was written. Raises StartError."""
    file = source / MANIFEST_NAME
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=BackupManifest)
    except FileNotFoundError:
        raise StartError(f"{source} has no {MANIFEST_NAME}: it is no backup, or one that was not finished.") from None
    except (OSError, msgspec.DecodeError) as error:
        raise StartError(f"{file} cannot be read ({error}): take another backup.") from error
    if manifest.format != FORMAT or manifest.revision not in REVISIONS:
        raise StartError(f"{source} was made by seckill {manifest.version}: install that version or a later one.")
    for name, expected in manifest.files.items():
        if not _is_ours(name):
            raise StartError(f"{file} names {name}, which no backup has: take another backup.")
        try:
            intact = _digest(source / name) == expected
        except OSError as error:
            raise StartError(f"{source / name} is missing ({error.strerror}): take another backup.") from error
        if not intact:
            raise StartError(f"{source / name} is not what was backed up: take another backup.")
    if missing := {LEDGER, SECRETS, f"{GATE}/{MANIFEST}"} - manifest.files.keys():
        raise StartError(f"{file} does not name {min(missing)}: take another backup.")
    return manifest


def write_file(path: Path, chunks: Iterable[bytes]) -> CopiedFile:
    """Writes a file that only its owner may read, and that is on disk when this returns."""
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        for chunk in chunks:
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        stream.flush()
        os.fsync(stream.fileno())
    return CopiedFile(size, digest.hexdigest())


def read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            yield chunk


def sync_folder(folder: Path) -> None:
    """Syncs the folder: the names in it have to survive a power cut, too."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _digest(path: Path) -> CopiedFile:
    digest, size = hashlib.sha256(), 0
    for chunk in read_chunks(path):
        digest.update(chunk)
        size += len(chunk)
    return CopiedFile(size, digest.hexdigest())


def _is_ours(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    return name in (LEDGER, SECRETS) or (folder == GATE and file.startswith("appendonly.aof."))


def _make(target: Path) -> None:
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = not any(target.iterdir())
    except OSError as error:
        raise StartError(f"{target} cannot be used ({error.strerror}): choose another folder.") from error
    if not empty:
        raise StartError(f"{target} is not empty: choose a new folder for each backup.")


def _clear(target: Path) -> None:
    """Removes what was begun. The folder itself stays: it may have been there before."""
    for name in (LEDGER, f"{LEDGER}-journal", SECRETS, MANIFEST_NAME, f"{MANIFEST_NAME}.new"):
        (target / name).unlink(missing_ok=True)
    shutil.rmtree(target / GATE_HOME, ignore_errors=True)
