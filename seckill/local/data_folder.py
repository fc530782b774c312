"""The folder of `seckill up`: one owner at a time, and the secrets that were made for it."""

import contextlib
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Self

from seckill.errors import StartError

SECRET_BYTES = 48
# HS256 wants a key of at least 32 bytes; anything shorter in the file was not written by us.
SECRET_LENGTH_MIN = 32
# Exists while a backup is being restored into the folder.
UNFINISHED = "restoring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    jwt_secret: str = field(repr=False)
    admin_key: str = field(repr=False)
    payment_secret: str = field(repr=False)


class DataFolder:
    """Held from `open` until `close`; the kernel lets go of it when the process ends in any way."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock

    @classmethod
    def open(cls, path: Path) -> Self:
        path = path.absolute()
        with _problems_with(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Python lets no child inherit it: one that outlives us must not keep the folder locked.
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                _take(lock, path)
                _must_be_finished(path)
            except BaseException:
                os.close(lock)
                raise
        return cls(path, lock)

    def close(self) -> None:
        # The file stays: were it removed, one process could lock the old file and another a new one.
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def secrets(self) -> Secrets:
        """Returns the folder's secrets, which are made at the very first call."""
        file = self.path / "secrets.json"
        with _problems_with(file):
            try:
                return _read(file)
            except FileNotFoundError:
                made = Secrets(**{name.name: secrets.token_urlsafe(SECRET_BYTES) for name in fields(Secrets)})
                _write(file, made)
                return made


def read_secrets(path: Path) -> Secrets | None:
    """Reads the secrets of a folder that another process may hold. Returns None if none were made yet."""
    file = path / "secrets.json"
    with _problems_with(file):
        return _read(file) if file.exists() else None


@contextlib.contextmanager
def _problems_with(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # If there is a file in the folder's place, `mkdir` says "File exists", which helps no one.
        reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise StartError(
            f"{path} cannot be used ({reason}): mend that, or choose another folder with --data."
        ) from error


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.read(lock, 32).decode(errors="replace").strip()
        # Empty for the moment between an owner's lock and its writing of the pid.
        owner = f" (pid {pid})" if pid else ""
        raise StartError(
            f"The data folder {path} is in use by another seckill{owner}: stop it, or choose another with --data."
        ) from error
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())


def _must_be_finished(path: Path) -> None:
    if (path / UNFINISHED).exists():
        raise StartError(f"A restore into {path} was interrupted: empty that folder, and restore again.")


def _read(file: Path) -> Secrets:
    with file.open("rb") as stream:
        if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
            os.fchmod(stream.fileno(), 0o600)
        content = stream.read()
    try:
        found = Secrets(**json.loads(content))
        intact = all(isinstance(s, str) and len(s) >= SECRET_LENGTH_MIN for s in asdict(found).values())
    except (ValueError, TypeError):
        intact = False
    if not intact:
        # Making new secrets unasked would void every token given out so far.
        raise StartError(
            f"The secrets in {file} are damaged: restore that file, "
            "or delete it to get new ones (tokens given out so far then stop working)."
        )
    return found


def _write(file: Path, made: Secrets) -> None:
    """The file is there complete or not at all, and never readable by others."""
    draft = file.with_suffix(".new")
    draft.unlink(missing_ok=True)  # left from an interrupted start: we hold the lock, so no other process is writing it
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(asdict(made), stream)
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name, too, has to survive a power cut
    finally:
        os.close(folder)
