"""Processes that wake up in another hour, where libfaketime is installed."""

import os
from collections.abc import Mapping
from pathlib import Path

WHERE = (
    "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
)


class Clocks:
    """Each process has a file that says how far its clock is off, and looks at it whenever it asks for the time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._library = next((path for pattern in WHERE for path in Path("/").glob(pattern[1:])), None)

    @property
    def there(self) -> bool:
        return self._library is not None

    @property
    def reason(self) -> str:
        return "" if self.there else "clock steps are left out: libfaketime is not installed (Debian: faketime)"

    def environ(self, member: str) -> Mapping[str, str]:
        if self._library is None:
            return {}
        self.step(member, 0)
        return {
            "LD_PRELOAD": os.fspath(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file(member)),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # timeouts go on as they were
            "DONT_FAKE_MONOTONIC": "1",
        }

    def step(self, member: str, seconds: int) -> None:
        self._file(member).write_text(f"{seconds:+d}\n")

    def governs(self, pid: int) -> bool:
        try:
            return "libfaketime" in Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return False

    def _file(self, member: str) -> Path:
        return self._folder / f"{member}.clock"
