"""Measures what experienced teams build instead: nginx with Lua in it, and one script call a request.

It uses the same Valkey with the same sync before every answer, checks no signatures, and writes nothing elsewhere.
"""

import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import redis.asyncio

from seckill.lab.bench.child import child
from seckill.lab.bench.claim_lines import write_lines
from seckill.lab.bench.load import load
from seckill.lab.bench.place import BenchPlace, place, until_answering
from seckill.lab.servers.ports import HOST, free_port

UNITS = 100_000_000
BUYERS_PER_S_MAX = 150_000
# Where Debian's libnginx-mod-http-lua and lua-nginx-redis are.
MODULES = Path("/usr/lib/nginx/modules")
NEEDED = ("ndk_http_module.so", "ngx_http_lua_module.so")
CLIENT = Path("/usr/share/lua/5.1/nginx/redis.lua")


def find_nginx() -> Path | None:
    """Finds an nginx with Lua and Lua's client for Redis. Returns None if any of them is missing."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    complete = found and CLIENT.exists() and all((MODULES / name).exists() for name in NEEDED)
    return Path(found) if found and complete else None


@asynccontextmanager
async def gateway_on(here: BenchPlace, nginx: Path) -> AsyncIterator[str]:
    """Yields the address of a gateway with a stock of `UNITS`."""
    async with redis.asyncio.Redis.from_url(here.settings.redis_url) as client:
        await client.set("stock", UNITS)
        script = await client.script_load((files("seckill.lab.bench") / "gateway.lua").read_text())
    port = free_port()
    text = (files("seckill.lab.bench") / "gateway.conf").read_text()
    config = here.folder / "nginx.conf"
    config.write_text(
        text.format(
            words="words",
            modules="".join(f"load_module {MODULES / name};" for name in NEEDED),
            # Started by root, nginx would run its workers as another user, who may not use our socket.
            user="user root root;" if os.getuid() == 0 else "",
            folder=here.folder,
            port=port,
            socket=here.settings.redis_url.removeprefix("unix://"),
            script=script,
        )
    )
    async with child([str(nginx), "-p", str(here.folder), "-e", str(here.folder / "error.log"), "-c", str(config)]):
        address = f"http://{HOST}:{port}"
        await until_answering(address)
        yield address


async def gateway(seconds: float) -> float | None:
    """Returns accepted claims a second, or None if nginx with Lua is not installed."""
    nginx = find_nginx()
    if nginx is None:
        return None
    async with place("") as here, gateway_on(here, nginx) as address:
        # As long as the engine's tokens and as different from each other, although nothing reads them: LuaJIT is slow
        # with long strings that are nearly alike.
        buyers = [secrets.token_hex(75) for _ in range(int(seconds * BUYERS_PER_S_MAX))]
        lines = write_lines(here.folder / "lines", "/orders", buyers)
        return (await load(address, lines, seconds=seconds)).accepted_per_s
