"""What starting and stopping `seckill up` costs: time to the first claim, CPU, memory, time to stop.

    nice .venv/bin/python benchmarks/start.py [--runs 5] [--api 2] [--tree FOLDER …]

Each run starts `seckill up --demo` twice: on an empty folder, and again on the same one. From the start of the command
on, one claim after the other is tried until one is accepted; on an empty folder, as soon as the printed lines tell of a
sale. `cpu` is the user and system time of all its processes until then, what has ended included. Seconds later `MB`
is the memory of all of them (PSS: a page that several share counts once), Valkey's included. Then it is stopped with
Ctrl-C. With several `--tree`, checkouts to compare, they take turns, so that whatever else the machine does is shared
fairly.
"""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from seckill.client import Client, NoAnswer, NotFound, Unavailable
from seckill.lab.servers.ports import free_port
from seckill.local.data_folder import read_secrets
from seckill.local.tether import tethered
from seckill.settings import Secret
from seckill.web.buyers.buyer_tokens import mint_buyer_token

HERE = Path(__file__).parents[1]
POLL_S = 0.01
GIVE_UP_S = 120
SETTLE_S = 3.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Seen:
    claim_s: float
    cpu_s: float
    mb: float
    stop_s: float
    sale: str


def family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from family(int(child))


def cpu_s(pids: list[int]) -> float:
    """With that of children that have ended and were waited for."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15] for pid in pids]
    return sum(sum(map(int, each)) for each in fields) * TICK_S


def shared_fairly_mb(pids: list[int]) -> float:
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    return sum(int(re.findall(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[0]) for text in rollups) / 1000


def accepted(port: int, sale: str, data: Path) -> bool:
    secrets = read_secrets(data)
    assert secrets is not None
    buyer = f"buyer-{time.time_ns()}"
    token = mint_buyer_token(
        Secret(secrets.jwt_secret), buyer, lifetime_s=3600, issuer=None, audience=None, now=time.time()
    )
    with Client(f"http://127.0.0.1:{port}", token, repeat_for_s=0) as client:
        try:
            client.claim(sale)
        except (NoAnswer, NotFound, Unavailable):  # the sale is not known there yet, or the gate is not ready
            return False
    return True


def once(tree: Path, folder: Path, api: int, sale: str) -> Seen:
    """`sale`: of an earlier run on the same folder, or empty."""
    port, data, printed = free_port(), folder / "data", folder / "printed"
    command = [sys.executable, "-m", "seckill", "up", "--demo", "--port", str(port), "--data", str(data)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    environ |= {"PYTHONPATH": str(tree)}
    began_s = time.monotonic()
    with printed.open("wb") as out, (folder / "log").open("ab") as log:
        command = tethered([*command, "--api", str(api)])
        process = subprocess.Popen(command, cwd=tree, env=environ, stdout=out, stderr=log, start_new_session=True)
    while not sale or not accepted(port, sale, data):
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < began_s + GIVE_UP_S, (folder / "log").read_text()
        if found := re.search(rb"/v1/sales/(\w+)/orders", printed.read_bytes()):
            sale = found[1].decode()
        time.sleep(POLL_S)
    claim_s = time.monotonic() - began_s
    cpu = cpu_s(list(family(process.pid)))
    time.sleep(SETTLE_S)
    mb = shared_fairly_mb(list(family(process.pid)))
    began_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(GIVE_UP_S) == 0, (folder / "log").read_text()
    return Seen(claim_s, cpu, mb, time.monotonic() - began_s, sale)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--api", type=int, default=2)
    arguments.add_argument("--tree", type=Path, action="append", default=[])
    chosen = arguments.parse_args()
    trees = [tree.resolve() for tree in chosen.tree] or [HERE]
    seen: dict[tuple[Path, str], list[Seen]] = {}
    print(f"{'first claim s':>44}{'cpu s':>8}{'MB':>8}{'stop s':>8}", flush=True)
    for _ in range(chosen.runs):
        for tree in trees:
            with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as folder:
                sale = ""
                for what in ("empty", "again"):
                    found = once(tree, Path(folder), chosen.api, sale)
                    sale = found.sale
                    seen.setdefault((tree, what), []).append(found)
                    show(tree, what, [found])
    print("\nmedian")
    for (tree, what), runs in sorted(seen.items()):
        show(tree, what, runs)


def show(tree: Path, what: str, runs: list[Seen]) -> None:
    claim, cpu, mb, stop = (
        statistics.median(getattr(run, name) for run in runs) for name in ("claim_s", "cpu_s", "mb", "stop_s")
    )
    print(f"{tree!s:<25.25} {what:<6}{claim:12.2f}{cpu:8.2f}{mb:8.0f}{stop:8.2f}", flush=True)


main()
