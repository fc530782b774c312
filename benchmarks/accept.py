"""How many claims a second are accepted and written, with everything on this machine.

    make check && .venv/bin/python benchmarks/accept.py [--seconds 15] [--connections 128]

Starts `seckill up` with one API process on a fresh folder, lets distinct buyers with tokens of their own press "buy"
over HTTP with Debian's `wrk` (which must be installed), and counts what was accepted and what is in the ledger.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx2

from tests.e2e.checks import until_drained
from tests.e2e.stack import Stack, running

# Each connection takes the next token; when they run out, it stops.
SCRIPT = """
local tokens = {}
for line in io.lines(os.getenv("TOKENS")) do tokens[#tokens + 1] = line end
local next_token = 0
function request()
  next_token = next_token + 1
  if next_token > #tokens then wrk.thread:stop() end
  return wrk.format("POST", os.getenv("CLAIM_PATH"), {Authorization = "Bearer " .. (tokens[next_token] or "")}, "{}")
end
"""


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--seconds", type=int, default=15)
    arguments.add_argument("--connections", type=int, default=128)
    arguments.add_argument("--buyers", type=int, default=300_000)
    arguments.add_argument(
        "--audit-every", type=float, default=1.0, help="seconds between the keeper's audits; 0: none"
    )
    chosen = arguments.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: apt-get install wrk")
    with tempfile.TemporaryDirectory(prefix="sk") as name:
        folder = Path(name)
        settings = {"SECKILL_AUDIT_EVERY_S": f"{chosen.audit_every:g}"}
        async with running(Stack(folder, api=1, settings=settings)) as stack:
            await measure(stack, folder, chosen)


def cpu_s(pids: list[int]) -> float:
    """User and system time of these processes so far."""
    ticks = (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in pids)
    return sum(int(user) + int(system) for user, system in ticks) / os.sysconf("SC_CLK_TCK")


async def measure(stack: Stack, folder: Path, chosen: argparse.Namespace) -> None:
    sale = await stack.create_sale(units=10_000_000)
    with (folder / "tokens").open("w") as tokens:
        tokens.writelines(f"{stack.token(f'buyer-{i}')}\n" for i in range(chosen.buyers))
    (folder / "claim.lua").write_text(SCRIPT)
    environ = {"TOKENS": str(folder / "tokens"), "CLAIM_PATH": f"/v1/sales/{sale['id']}/orders"}
    command = ["wrk", "-t1", f"-c{chosen.connections}", f"-d{chosen.seconds}s", "--latency"]
    command += ["-s", str(folder / "claim.lua")]
    async with stack.engine() as engine:
        (found,) = await engine.ledger.sales()
        roles = {role: stack.pids(role) for role in ("api", "worker", "valkey", "keeper")}
        cpu_before_s = {role: cpu_s(pids) for role, pids in roles.items()}
        began_s = time.monotonic()
        process = await asyncio.create_subprocess_exec(*command, stack.url, env=environ, stdout=subprocess.PIPE)
        output, _ = await process.communicate()
        took_s = time.monotonic() - began_s
        view = await engine.gate.inspect(found.round.ref)
        assert view is not None
        await until_drained(engine, within_s=300)
        drained_s = time.monotonic() - began_s - took_s
        cpu_us = {role: (cpu_s(pids) - cpu_before_s[role]) / view.admitted * 1e6 for role, pids in roles.items()}
    async with httpx2.AsyncClient() as http:
        metrics = (await http.get(f"{stack.url}/metrics")).text
    calls, claims = (stack.metric(metrics, f"seckill_admit_batch_size_{what}") for what in ("count", "sum"))
    print(output.decode())
    print(f"accepted/s   {view.admitted / took_s:8.0f}   ({view.admitted} in {took_s:.1f} s)")
    print(f"backlog      {view.backlog:8d}   at the end, written {drained_s:.1f} s later")
    print(f"mean batch   {claims / calls:8.1f}   claims in one call to the gate")
    print("CPU          " + ", ".join(f"{role} {us:.0f} µs" for role, us in cpu_us.items()) + " for each claim")


if __name__ == "__main__":
    asyncio.run(main())
