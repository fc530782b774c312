"""Owns a server as `seckill up` does. Run as `python -m tests.local.owner DATA`.

Says the server's pid. At Ctrl-C it asks the server for a sign of life, says it, and stops the server.
"""

import asyncio
import signal
import sys
from pathlib import Path

from redis.asyncio import Redis

from seckill.local.valkey import EmbeddedValkey


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main(data_dir: Path) -> None:
    interrupted = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
    server = EmbeddedValkey(data_dir, durability="strict")
    await server.start()
    try:
        await server.ready()
        say(server.pid)
        await interrupted.wait()
        async with Redis.from_url(server.url) as client:
            say(await client.ping())
    finally:
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
