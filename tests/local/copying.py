"""Has copies made as `seckill up` does. Run as `python -m tests.local.copying WORD …`, one copy for each word.

Says the pid of the fork server and of each copy, and the exit code of each when it ends. A copy that is asked to
`look`, or to look with a `socket` to listen on, says what it sees; asked to `wait` it waits; with a number it exits.
"""

import asyncio
import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from prometheus_client import Counter

from seckill.local.fork_server import Copy, ForkServer, fork_server

SEEN = Counter("seen", "Looks")


def say(word: object) -> None:
    sys.stdout.write(f"{json.dumps(word)}\n")
    sys.stdout.flush()


def look(fds: Sequence[str]) -> dict[str, object]:
    def listens(fd: int) -> bool:
        try:
            with socket.socket(fileno=os.dup(fd)) as found:
                return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
        except OSError:
            return False

    async def own_loop() -> bool:
        await asyncio.sleep(0)
        return True

    before = SEEN._value.get()
    SEEN.inc()
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0),
        "listening": [int(fd.name) for fd in Path("/proc/self/fd").iterdir() if listens(int(fd.name))],
        "given": [int(fd) for fd in fds],
        "stdin": str(Path("/proc/self/fd/0").readlink()),
        "threads": threading.active_count(),
        "running": asyncio._get_running_loop() is not None,
        "loops": asyncio.run(own_loop()),
        "random": random.random(),
        "seen_before": before,
        "loaded": [os.environ["GIVEN"], *LOADED],
        "command": Path("/proc/self/cmdline").read_bytes().decode().rstrip("\0").split("\0"),
    }


def run(arguments: Sequence[str]) -> None:
    match arguments:
        case ["look" | "socket", *fds]:
            say(look(fds))
        case ["wait"]:
            say("waiting")
            time.sleep(600)
        case [code]:
            sys.exit(int(code))


LOADED: list[str] = []


def load() -> None:
    LOADED.append("loaded")


async def main(words: Sequence[str], server: ForkServer | None, listener: socket.socket) -> None:
    assert server is not None
    SEEN.inc(5)
    copies: list[Copy] = []
    for word in words:
        copy = server.fork([word], listener.fileno() if word == "socket" else None)
        assert copy is not None
        copies.append(copy)
    say({"server": server._pid, "copies": [copy.pid for copy in copies]})
    while copies:
        for copy in list(copies):
            if (code := copy.poll()) is not None:
                say({"ended": copy.pid, "code": code})
                copies.remove(copy)
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    environ = {**os.environ, "GIVEN": "given"}
    release = partial(LOADED.append, "released")
    with fork_server(load, release, run, environ) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(main(sys.argv[1:], server, listener))
