"""How long newcomers wait for their answer when thousands of them connect while the API is fully busy.

    make check && .venv/bin/python benchmarks/connections.py [--newcomers 10000] [--over 1] [--repeats 3]

One API process on a fresh Valkey that syncs before it answers. All through, 500 connections press "buy" as fast as they
are answered. After two seconds newcomers connect, evenly over the given time: each opens a connection, claims once, and
is measured from connect to answer. That is done with our own way of letting people in and, in turns, with uvloop's.

Everything runs on this machine: generator, newcomers and servers share its cores. Whoever connects needs a file at both
ends: both sides raise their limit to the hard one, and it is said when that is too low.
"""

import argparse
import asyncio
import contextlib
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.load import load
from seckill.lab.bench.place import Running, engine_on, environ_of, place, until_answering
from seckill.local.tether import tethered
from seckill.web.connections.listening_socket import bind

WITHIN_S = 2.0
BUSY_FOR_S = 2.0
GIVEN_UP_S = 30.0
UNITS = 100_000_000


def serve_as_uvloop_does(fd: str) -> None:
    """The API with the event loop's own listener."""
    import uvicorn  # noqa: PLC0415

    from seckill.cli import main  # noqa: PLC0415
    from seckill.web import server  # noqa: PLC0415

    server.ApiServer.startup = uvicorn.Server.startup  # type: ignore[method-assign]
    sys.argv = ["seckill", "api", "--fd", fd]
    main()


def come(port: int, requests: list[bytes], over_s: float) -> list[float]:
    """Seconds from connect to answer of each newcomer; those who get none count as 30."""
    selector = selectors.DefaultSelector()
    began: dict[socket.socket, tuple[float, bytes]] = {}
    took: list[float] = []
    start_s = time.perf_counter()
    waiting = iter(enumerate(requests))
    following = next(waiting, None)
    while following is not None or began:
        now_s = time.perf_counter()
        if now_s > start_s + over_s + GIVEN_UP_S:
            return took + [GIVEN_UP_S] * len(began)
        while following is not None and now_s >= start_s + following[0] * over_s / len(requests):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
            began[client] = (time.perf_counter(), following[1])
            selector.register(client, selectors.EVENT_WRITE)
            following = next(waiting, None)
        for key, event in selector.select(0.001):
            ready = key.fileobj
            assert isinstance(ready, socket.socket)
            if event & selectors.EVENT_WRITE:
                with contextlib.suppress(OSError):
                    ready.send(began[ready][1])
                selector.modify(ready, selectors.EVENT_READ)
                continue
            with contextlib.suppress(OSError):
                if ready.recv(65536).startswith(b"HTTP/1.1 202 "):
                    took.append(time.perf_counter() - began[ready][0])
                else:
                    took.append(GIVEN_UP_S)
            del began[ready]
            selector.unregister(ready)
            ready.close()
    return took


@contextlib.asynccontextmanager
async def api(running: Running, *, own: bool) -> AsyncIterator[int]:
    """The API's port."""
    with contextlib.closing(bind("127.0.0.1", 0)) as listener:
        fd = str(listener.fileno())
        arguments = ["-m", "seckill", "api", "--fd", fd] if own else [__file__, "--serve", fd]
        environ = {**environ_of(running.place.settings), "SECKILL_CONNECTIONS_PER_ADDRESS": "1000000"}
        process = subprocess.Popen(  # noqa: ASYNC220 (nothing else is going on yet)
            tethered([sys.executable, *arguments]), env=environ, pass_fds=[int(fd)]
        )
        port = listener.getsockname()[1]
        try:
            await until_answering(f"http://127.0.0.1:{port}", "/readyz")
            yield port
        finally:
            process.terminate()
            process.wait(30)


async def measure(newcomers: int, over_s: float, *, own: bool) -> tuple[list[float], float]:
    """What each newcomer waited, and what was answered a second to those who were there before."""
    async with place("") as here, engine_on(here, ["worker", "keeper"]) as running, api(running, own=own) as port:
        address = f"http://127.0.0.1:{port}"
        sale = await running.new_sale(UNITS)
        seconds = BUSY_FOR_S + over_s + 4 * WITHIN_S
        tokens = make_tokens(here.settings, seconds)
        lines = write_lines(here.folder / "busy", running.path(sale), tokens[newcomers:])
        head = f"POST {running.path(sale)} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer "
        requests = [f"{head}{token}\r\n\r\n".encode() for token in tokens[:newcomers]]
        busy = asyncio.create_task(load(address, lines, seconds=seconds))
        await asyncio.sleep(BUSY_FOR_S)
        took = await asyncio.to_thread(come, port, requests, over_s)
        return took, (await busy).per_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--newcomers", type=int, default=10_000)
    parser.add_argument("--over", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if given.serve is not None:
        serve_as_uvloop_does(given.serve)
        return
    if hard < given.newcomers + 1000:
        sys.exit(f"A process may open {hard} files here: too few for {given.newcomers} connections.")
    print(f"{given.newcomers} newcomers over {given.over:g} s, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("way     p50 s   p99 s   longest s   over 2 s   answered a second to the others")
    for _ in range(given.repeats):
        for own in (True, False):
            took, per_s = asyncio.run(measure(given.newcomers, given.over, own=own))
            took.sort()
            late = sum(each > WITHIN_S for each in took)
            p99 = took[int(len(took) * 0.99)]
            way = "ours  " if own else "uvloop"
            print(
                f"{way}  {statistics.median(took):6.2f}  {p99:6.2f}  {took[-1]:10.2f}  {late:9}  {per_s:10.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
