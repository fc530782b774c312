"""Starts processes with a wrong clock, where libfaketime is installed."""

from collections.abc import Mapping
from pathlib import Path

WHERE = (
    "usr/lib/*/faketime/libfaketime.so.1",
    "usr/lib/faketime/libfaketime.so.1",
    "usr/local/lib/faketime/libfaketime.so.1",
)


class Clocks:
    def __init__(self) -> None:
        self._library = next((path for pattern in WHERE for path in Path("/").glob(pattern)), None)

    @property
    def there(self) -> bool:
        return self._library is not None

    @property
    def reason(self) -> str:
        return "" if self.there else "clock steps are left out: libfaketime is not installed (Debian: faketime)"

    def environ(self, step_s: int) -> Mapping[str, str]:
        """Returns the environment for a process whose clock is off by this much."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME": f"{step_s:+d}",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # timeouts go on as they were
            "DONT_FAKE_MONOTONIC": "1",
        }

    def governs(self, pid: int) -> bool:
        try:
            return "libfaketime" in Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return False
