"""Starts seckill and one of the shops beside it: `python examples/run.py fastapi-shop`, or `make run` in its folder.

Everything that the two must know of each other is here: addresses, and the secrets that they share.
"""

import argparse
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
READY_WITHIN_S = 120.0


@dataclass(frozen=True)
class Example:
    seckill: Mapping[str, str]  # its settings; `SHOP` stands for the address of the shop
    prepared: Sequence[Sequence[str]]  # commands that end, before the first start
    processes: Sequence[Sequence[str]]  # of the shop; `PORT` stands for its port
    to_try: str


EXAMPLES = {
    "fastapi-shop": Example(
        seckill={
            "SECKILL_SHOP_NAME": "Tea shop",
            "SECKILL_ORIGINS": "SHOP",
            "SECKILL_SIGN_IN_URL": "SHOP/sign-in",
            "SECKILL_PAYMENT_PROVIDER": "callback",
            "SECKILL_PAY_URL": "SHOP/pay",
            "SECKILL_REFUND_URL": "SHOP/refunds",
        },
        prepared=[],
        processes=[["uvicorn", "teashop.app:app", "--port", "PORT", "--log-level", "warning"]],
        to_try="""\
  1. sign in as `staff` (the password is the name) at SHOP/staff, and announce a flash sale
  2. sign in as `ann` in a private window, buy it on the product's page (the teapot has colours), and pay
  3. as `staff`: the stock, the orders and the letters have followed; refund the order""",
    ),
    "django-shop": Example(
        seckill={"SECKILL_SHOP_NAME": "Bookshop"},
        prepared=[["manage.py", "migrate", "--verbosity", "0"], ["manage.py", "prepare_shop"]],
        processes=[["manage.py", "runserver", "--noreload", "PORT"], ["manage.py", "follow_seckill"]],
        to_try="""\
  1. sign in as `staff` (the password is the name) at SHOP/admin, and add a flash sale there, with codes if you like
  2. sign in as `ann` in a private window, buy it on the book's page, and pay
  3. as `staff`: the stock, the orders and the letters have followed; refund the order""",
    ),
}


def seckill_settings(name: str, shop_url: str) -> dict[str, str]:
    return {key: value.replace("SHOP", shop_url, 1) for key, value in EXAMPLES[name].seckill.items()}


def shop_settings(data: Path, shop_url: str, seckill_url: str) -> dict[str, str]:
    """For the environment of the shop. In production, whoever runs both gives the same secrets to both."""
    shared = json.loads((data / "secrets.json").read_text())
    session_secret = data / "session-secret"
    if not session_secret.exists():
        session_secret.write_text(secrets.token_urlsafe(32))
    return {
        "SHOP_URL": shop_url,
        "SHOP_DATABASE": str(data / "shop.db"),
        "SHOP_SESSION_SECRET": session_secret.read_text(),
        "SHOP_SECKILL_URL": seckill_url,
        "SHOP_ADMIN_KEY": shared["admin_key"],
        "SHOP_JWT_SECRET": shared["jwt_secret"],
        "SHOP_PAYMENT_SECRET": shared["payment_secret"],
    }


def shop_commands(name: str, port: int) -> tuple[list[list[str]], list[list[str]]]:
    """What is run once before, and what runs for as long as the shop is open."""

    def command(words: Sequence[str]) -> list[str]:
        script = words[0] if words[0].endswith(".py") else f"-m{words[0]}"
        return [sys.executable, script, *(word.replace("PORT", str(port)) for word in words[1:])]

    example = EXAMPLES[name]
    return [command(words) for words in example.prepared], [command(words) for words in example.processes]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("shop", choices=EXAMPLES)
    arguments.add_argument("--port", type=int, default=9000, help="of the shop")
    arguments.add_argument("--seckill-port", type=int, default=8000)
    arguments.add_argument("--data", type=Path, help="folder for the data of both; `.data` in the shop's if not given")
    given = arguments.parse_args()
    folder = HERE / given.shop
    data = (given.data or folder / ".data").absolute()
    shop_url, seckill_url = (f"http://127.0.0.1:{port}" for port in (given.port, given.seckill_port))
    ports = {"--port": given.port, "--seckill-port": given.seckill_port}
    if taken := [port for port in ports.values() if is_taken(port)]:
        return say(taken_ports(given.shop, ports, taken))
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SECKILL_", "SHOP_"))}
    running: list[subprocess.Popen[bytes]] = []
    try:
        up = [sys.executable, "-m", "seckill", "up", "--port", str(given.seckill_port), "--data", str(data)]
        running.append(start(up, folder, ours | seckill_settings(given.shop, shop_url), data / "seckill.log"))
        until_answered(f"{seckill_url}/readyz", running, stop)
        environ = ours | shop_settings(data, shop_url, seckill_url)
        prepared, processes = shop_commands(given.shop, given.port)
        for command in prepared:
            subprocess.run(command, cwd=folder, env=environ, check=True)
        running += [start(command, folder, environ, data / "shop.log") for command in processes]
        until_answered(f"{shop_url}/", running, stop)
        if not stop.is_set():
            print(greeting(given.shop, shop_url, seckill_url, data), flush=True)
        while not stop.wait(0.2) and all(process.poll() is None for process in running):
            pass
        return 0 if stop.is_set() else say(f"One of the processes has ended: see the logs in {data}.")
    except TimeoutError as error:
        return say(f"{error} See the logs in {data}.")
    finally:
        for process in reversed(running):  # seckill last: the shop may still have something to tell it
            process.terminate()
            process.wait()


def taken_ports(shop: str, ports: Mapping[str, int], taken: Sequence[int]) -> str:
    """What to type instead: with every port, so that it is not the other one that is taken then."""
    free: dict[str, int] = {}
    for option, port in ports.items():
        while is_taken(port) or port in free.values():
            port += 1
        free[option] = port
    which = "Port {} is" if len(taken) == 1 else "Ports {} are"
    named = which.format(" and ".join(map(str, taken)))
    choice = " ".join(f"{option} {port}" for option, port in free.items())
    return f'{named} taken. Stop what runs there, or choose others: make -C examples/{shop} run ARGS="{choice}"'


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # of one that has just ended it is not
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def start(command: Sequence[str], folder: Path, environ: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        # In a session of its own: Ctrl-C is for this program, which stops the others in their order.
        return subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=out, start_new_session=True)


def until_answered(url: str, running: Sequence["subprocess.Popen[bytes]"], stop: threading.Event) -> None:
    give_up_s = time.monotonic() + READY_WITHIN_S
    while not stop.is_set():
        try:
            urllib.request.urlopen(url, timeout=10).close()
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                return
        else:
            return
        if time.monotonic() > give_up_s or any(process.poll() is not None for process in running):
            raise TimeoutError(f"Nothing answers at {url}.")
        stop.wait(0.1)


def greeting(name: str, shop_url: str, seckill_url: str, data: Path) -> str:
    return f"""
The shop is open at {shop_url}

  shop       {shop_url}/
  console    {seckill_url}/console
  its key    SECKILL_DATA_DIR={data} {Path(os.path.normpath(sys.executable)).with_name("seckill")} token admin
  data, logs {data}

To try:
{EXAMPLES[name].to_try.replace("SHOP", shop_url)}

Ctrl-C stops both; the data stays.
"""


def say(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
