"""Asks this machine's system how much of a disk is left."""

import asyncio
import shutil
from pathlib import Path

from seckill.domain.space import Space, SpaceKind


async def disk_space(folder: Path) -> Space | None:
    """Returns None if this process may not look at the folder, or if the file system does not say: one that runs as a
    program (FUSE) may give zeros. In a thread, because a network disk may be silent."""
    try:
        disk = await asyncio.to_thread(shutil.disk_usage, folder)
    except OSError:
        return None
    if not disk.total:
        return None
    return Space(SpaceKind.DISK, str(folder), disk.free, disk.total)
