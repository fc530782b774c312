"""Chooses where a server's unix socket goes, into its data folder or to a shorter path, and asks who answers there."""

import asyncio
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from seckill.errors import StartError

# The kernel's limit is 107 bytes on Linux and 103 on macOS.
SOCKET_PATH_BYTES_MAX = 100


def socket_path(data_dir: Path, name: str) -> Path:
    """The same path at every start, so that a server left over from an earlier one is noticed."""
    beside_data = data_dir / name
    if _fits(beside_data):
        return beside_data
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    elsewhere = Path(tempfile.gettempdir()).absolute() / f"seckill-{os.geteuid()}-{digest}" / name
    if not _fits(elsewhere):
        raise StartError(
            f"The paths {beside_data} and {elsewhere} are both too long for a socket: "
            "choose a shorter data folder with --data."
        )
    return elsewhere


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX


def make_private(folder: Path) -> None:
    """Makes a folder in a place where any user may write, or takes an existing one that is certainly ours alone."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()  # not stat: a link could lead to a place chosen by another user
        private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
        if not private or found.st_uid != os.geteuid():
            raise StartError(
                f"{folder} is needed for a socket, but others could get at it: "
                "remove it, or choose a shorter data folder with --data."
            ) from None


async def answers(socket: Path) -> bool:
    """True when a process listens there; a socket file of a dead one refuses."""
    try:
        _reader, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return False
    writer.close()
    return True


async def said(socket: Path, asked: bytes, within_s: float) -> bytes:
    """The line that comes back; empty if there is none in time."""
    try:
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_unix_connection(socket)
            try:
                writer.write(asked)
                return await reader.readline()
            finally:
                writer.close()
    except OSError:  # TimeoutError is one
        return b""
