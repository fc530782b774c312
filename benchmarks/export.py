"""Memory and time of an export: of a thousand orders, and of a million.

    make install && .venv/bin/python benchmarks/export.py

The figures of docs/orders.md. `seckill up` on SQLite in a folder of its own; the orders are made by an INSERT … SELECT
past the engine, and read over HTTP by a client that keeps nothing. The memory is the resident set of the API's process,
looked at ten times a second. Needs Linux, and a quarter of an hour.
"""

import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from seckill.client import Client
from seckill.domain.order_number import ORIGIN_S
from seckill.lab.servers.ports import free_port
from seckill.local.data_folder import read_secrets

SIZES = (1_000, 100_000, 1_000_000)
ITEMS = 50
METADATA = '{"delivery": "to the neighbour, second floor", "note": "a gift"}'
LOOK_EVERY_S = 0.1
READ_BYTES = 1 << 16
# Each with its item; the last item has one in a thousand of them.
ORDERS = """
INSERT INTO orders (id, round_id, sale_id, user_id, quantity, state, active_slot, slot, request_id, epoch, price_cents,
                    currency, created_ms, recorded_ms, expires_ms, item_id, metadata)
WITH RECURSIVE numbers(i) AS (SELECT :above + 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < :count)
SELECT :first + i, :round, :sale, 'buyer-' || i, 1, 'unpaid', 1, 1, '', 1, 500, 'CNY', :now_ms, :now_ms, 4102444800000,
       CASE WHEN i % 1000 = 0 THEN :rare ELSE :least + i % (:rare - :least) END, :metadata
FROM numbers
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as (url, key, processes):
        with Client(url, key) as shop:
            sale = shop.create_sale("Mug", items=_items(), begins_at=_in(hours=1), ends_at=_in(hours=2))
            assert isinstance(sale.items, list)
        pages = ("", f"&sale_id={sale.id}", f"&item_id={sale.items[-1].item_id}")
        above = 0
        for size in SIZES:
            fill(Path(folder) / "data", above, size)
            above = size
            for page in pages:
                took_s, _, _ = measured(url, key, f"/v1/admin/orders?limit=100{page}", processes)
                print(f"{size} orders, a page of 100{page}: {took_s * 1000:.0f} ms", flush=True)
            for suffix in ("jsonl", "csv"):
                took_s, sent, mb = measured(url, key, f"/v1/admin/orders.{suffix}", processes)
                print(f"{size} orders, {suffix}: {sent / 1e6:.1f} MB in {took_s:.0f} s, API {mb}", flush=True)


def _items() -> list[dict[str, Any]]:
    return [{"title": f"colour {place}", "units": 10_000_000, "price_cents": 500} for place in range(ITEMS)]


def _in(**period: float) -> datetime:
    return datetime.now(UTC) + timedelta(**period)


@contextmanager
def running(folder: Path) -> Iterator[tuple[str, str, list[int]]]:
    """The address, the admin key, and the processes that listen there."""
    port = free_port()
    command = [sys.executable, "-m", "seckill", "up", "--data", str(folder / "data"), "--port", str(port), "--api", "1"]
    with (folder / "log").open("wb") as log:
        up = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}"
        while not _answers(port):
            assert up.poll() is None, (folder / "log").read_text()
            time.sleep(0.2)
        secrets = read_secrets(folder / "data")
        assert secrets is not None
        yield url, secrets.admin_key, listening(port)
    finally:
        up.send_signal(signal.SIGINT)
        up.wait()


def _answers(port: int) -> bool:
    try:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False


def listening(port: int) -> list[int]:
    """Processes that have the socket, by Linux's own tables."""
    inodes = {
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    }
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            files = [str(file.readlink()) for file in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(f"socket:[{inode}]" in files for inode in inodes):
            found.append(int(process.name))
    return found


def fill(data: Path, above: int, count: int) -> None:
    [path] = data.glob("*.db")
    with sqlite3.connect(path, timeout=60) as database:
        round_id, sale_id = database.execute("SELECT id, sale_id FROM rounds").fetchone()
        least, rare = database.execute("SELECT min(id), max(id) FROM items").fetchone()
        now_ms = int(time.time() * 1000)
        facts = {"above": above, "count": count, "round": round_id, "sale": sale_id, "now_ms": now_ms}
        facts |= {"first": (now_ms // 1000 - ORIGIN_S) << 32, "least": least, "rare": rare, "metadata": METADATA}
        database.execute(ORDERS, facts)


def measured(url: str, key: str, path: str, processes: list[int]) -> tuple[float, int, str]:
    """Seconds, bytes that were sent, and the memory of the API before and at most."""
    before = most = resident(processes)
    over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(LOOK_EVERY_S):
            most = max(most, resident(processes))

    watcher = threading.Thread(target=watch)
    watcher.start()
    began_s = time.monotonic()
    connection = HTTPConnection(url.removeprefix("http://"), timeout=600)
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    sent = 0
    while portion := answer.read(READ_BYTES):
        sent += len(portion)
    took_s = time.monotonic() - began_s
    over.set()
    watcher.join()
    most = max(most, resident(processes))
    return took_s, sent, f"{before / 1e6:.0f} MB before, {most / 1e6:.0f} MB at most"


def resident(processes: list[int]) -> int:
    """Of the greatest of them, in bytes: the others only hold the socket open."""
    found = [re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{each}/status").read_text()) for each in processes]
    return max(int(each[1]) * 1024 for each in found if each)


if __name__ == "__main__":
    main()
