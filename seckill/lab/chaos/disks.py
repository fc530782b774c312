"""Small disks in memory that can be filled. No other process sees them, and they disappear with this one."""

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
MNT_DETACH = 2  # even if a process still has a file open
MS_PRIVATE_REC = 0x00040000 | 0x4000
BALLAST = "ballast"
PORTION = 1 << 20


class Disks:
    def __init__(self) -> None:
        self._mine = False
        self._mounted: list[Path] = []
        self.reason = ""  # why there are no such disks here

    def mount(self, folder: Path, mib: int) -> bool:
        """Mounts an empty disk of that size on the folder. Returns False and sets `reason` where that is not
        allowed."""
        self._mine = self._mine or self._leave_namespace()
        if not self._mine:
            return False
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={mib}m,mode=700".encode()) != 0:
            self.reason = f"a small disk cannot be mounted ({os.strerror(ctypes.get_errno())})"
            return False
        self._mounted.append(folder)
        return True

    def unmount(self) -> None:
        """Unmounts all disks, so that their folders can be removed."""
        libc = ctypes.CDLL(None, use_errno=True)
        for folder in self._mounted:
            libc.umount2(os.fsencode(folder), MNT_DETACH)

    def _leave_namespace(self) -> bool:
        """Makes further mounts visible only to this process and its children. Call it from the main thread before there
        are other threads, because Linux does this per thread."""
        if sys.platform != "linux":
            self.reason = "small disks need Linux"
            return False
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_PRIVATE_REC, None) != 0:
            self.reason = f"small disks need root ({os.strerror(ctypes.get_errno())})"
            return False
        return True


def fill(folder: Path) -> int:
    """Fills all remaining space. Returns how many bytes that took."""
    taken = 0
    with (folder / BALLAST).open("wb", buffering=0) as file:
        portion = bytes(PORTION)
        while portion:
            try:
                taken += file.write(portion)
            except OSError:
                portion = portion[: len(portion) // 2]
    return taken


def free(folder: Path) -> None:
    (folder / BALLAST).unlink(missing_ok=True)


def is_full(folder: Path) -> bool:
    probe = folder / "probe"
    try:
        probe.write_bytes(bytes(PORTION))
    except OSError:
        return True
    finally:
        probe.unlink(missing_ok=True)
    return False
