"""Reads the embedded server's append-only file as it is at one moment.

The file consists of parts: a base, and one or more to which commands are added; a manifest names them. Now and then the
server writes a new base and removes the parts that it replaces. Parts that we have opened stay readable meanwhile, and
anything behind the noted end of the last one came later. So a copy needs no pause: it is the beginning of the file, as
a power cut would have left it.
"""

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import redis.exceptions
from redis.asyncio import Redis as Client

from seckill.backends.redis import keys
from seckill.errors import StartError

FOLDER = "appendonlydir"
MANIFEST = "appendonly.aof.manifest"
# file appendonly.aof.1.base.rdb seq 1 type b; `h` is history, which only waits to be removed.
_PART = re.compile(r"file (appendonly\.aof\.[\w.]+) seq \d+ type ([bih])\b.*")
# The server puts the mark into its file before it answers, or with `fast` a moment later.
MARKED_WITHIN_S = 5.0
POLL_S = 0.005
MARK_S = 60
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FilePart:
    name: str
    stream: BinaryIO
    size: int  # bytes after it are later than the moment

    def chunks(self) -> Iterator[bytes]:
        self.stream.seek(0)
        left = self.size
        while left and (chunk := self.stream.read(min(CHUNK, left))):
            left -= len(chunk)
            yield chunk


@dataclass(frozen=True, slots=True)
class GateFile:
    manifest: str
    parts: list[FilePart]


@asynccontextmanager
async def connected(url: str | None) -> AsyncIterator[Client | None]:
    """Yields a client of the server, which has answered once, or None if it does not run."""
    if url is None:
        yield None
        return
    async with Client.from_url(url, socket_timeout=MARKED_WITHIN_S) as client:
        with _answering():
            await client.ping()
        yield client


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (redis.exceptions.RedisError, TimeoutError) as error:
        raise StartError("The embedded server does not answer: wait until it has started, and try again.") from error


@asynccontextmanager
async def gate_file(home: Path, client: Client | None) -> AsyncIterator[GateFile]:
    """Yields the file, with everything that the server had answered when this was called. `home`: the server's folder.
    `client`: None if the server does not run."""
    folder = home / FOLDER
    with ExitStack() as stack:
        if client is None:
            yield await asyncio.to_thread(_opened, folder, stack)
            return
        mark = secrets.token_hex(16)
        with _answering():
            async with asyncio.timeout(MARKED_WITHIN_S):
                before = await asyncio.to_thread(_sizes, folder)
                await client.set(keys.BACKUP, mark, ex=MARK_S)
                found = None
                while found is None:
                    found = await asyncio.to_thread(_with_mark, folder, mark.encode(), before, stack)
                    await asyncio.sleep(0 if found else POLL_S)
        yield found


def _with_mark(folder: Path, mark: bytes, before: Mapping[str, int], stack: ExitStack) -> GateFile | None:
    """Returns None if the mark has not arrived yet, or if the server has just begun another part."""
    with ExitStack() as opening:
        try:
            found = _opened(folder, opening)
        except FileNotFoundError:  # replaced in this very moment
            return None
        last = found.parts[-1]
        if not _is_in(last, mark, before.get(last.name, 0)) or _manifest(folder) != found.manifest:
            return None
        stack.push(opening.pop_all())
        return found


def _opened(folder: Path, stack: ExitStack) -> GateFile:
    manifest = _manifest(folder)
    names = [match[1] for line in manifest.splitlines() if (match := _PART.fullmatch(line))]
    if not names:
        raise StartError(f"{folder / MANIFEST} names no file: it was not written by a server that seckill has started.")
    parts = []
    for name in names:
        stream = stack.enter_context((folder / name).open("rb"))
        parts.append(FilePart(name, stream, os.fstat(stream.fileno()).st_size))
    return GateFile(manifest, parts)


def _manifest(folder: Path) -> str:
    lines = (folder / MANIFEST).read_text().splitlines()
    return "".join(f"{line}\n" for line in lines if (match := _PART.fullmatch(line)) and match[2] != "h")


def _is_in(part: FilePart, mark: bytes, since: int) -> bool:
    part.stream.seek(since)
    return mark in part.stream.read(max(0, part.size - since))


def _sizes(folder: Path) -> dict[str, int]:
    with os.scandir(folder) as entries:
        found = {}
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # the server has just removed it
                found[entry.name] = entry.stat().st_size
        return found
