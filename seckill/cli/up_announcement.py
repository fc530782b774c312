"""What `seckill up` prints once it answers: its address, and lines to copy."""

import os
import shlex
import shutil
import socket
import sys
import time
from pathlib import Path

import msgspec

from seckill.backends.payment.sandbox import Sandbox
from seckill.cli.api_connection import ADDRESS_FILE, shown_host
from seckill.client import AsyncClient, ClientError
from seckill.errors import StartError
from seckill.loops import Stop
from seckill.settings import Settings

READY_WITHIN_S = 30.0
ANSWER_WITHIN_S = 2.0
POLL_S = 0.1
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
KEEPS_NOTHING = "none, it keeps nothing: everything is gone when it stops"


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that only the engine knows."""

    buyer_token: str | None  # None: another service signs them
    sale_id: str | None  # a sale that is open now
    has_help: bool


async def announce(settings: Settings, listener: socket.socket, stop: Stop, known: Greeting, *, demo: bool) -> None:
    """Prints the address as soon as the API answers, and keeps it in a file until told to stop."""
    address = f"http://{shown_host(settings.host)}:{listener.getsockname()[1]}"
    noted = settings.data_dir / ADDRESS_FILE
    # Now, over that of a run that was killed: who sees that the API answers may use a command at once.
    noted.write_text(address + "\n")
    try:
        await _until_ready(address, stop)
        if not stop.is_set():
            greet(settings, address, known, demo=demo)
        await stop.wait()
    finally:
        if stop.is_set():
            _say_dimly("Stopping: finishing what was accepted …")
        noted.unlink(missing_ok=True)


async def _until_ready(address: str, stop: Stop) -> None:
    give_up_at = time.monotonic() + READY_WITHIN_S
    async with AsyncClient(address, within_s=ANSWER_WITHIN_S, repeat_for_s=0) as client:
        while not stop.is_set() and not await _is_ready(client):
            if time.monotonic() > give_up_at:
                raise StartError(f"The API was not ready within {READY_WITHIN_S:.0f} s: the log above says why.")
            await stop.wait(POLL_S)


async def _is_ready(client: AsyncClient) -> bool:
    try:
        await client.call("GET", "/readyz")
    except ClientError:
        return False
    return True


def _say_dimly(sentence: str) -> None:
    plain = not sys.stderr.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    sys.stderr.write(f"{sentence}\n" if plain else f"{_DIM}{sentence}{_PLAIN}\n")


def greet(settings: Settings, address: str, known: Greeting, *, demo: bool) -> None:
    """Prints the address and lines to copy, to stdout, so that they can be separated from the log."""
    write = sys.stdout.write
    write(f"\nseckill is running at {address}\n\n")
    write(f"  buy        {address}/\n")
    write(f"  console    {address}/console\n")
    write(f"  API docs   {address}/docs\n")
    if known.has_help:
        write(f"  help       {address}/help\n")
    if settings.payment_provider == Sandbox.name:
        write("  payment    a sandbox for trying things out: no money moves\n")
    write(f"  data       {KEEPS_NOTHING if settings.in_memory else settings.data_dir}\n")
    assert settings.admin_key is not None
    # Anything but a terminal may be a log that others read.
    shown = settings.admin_key.reveal() if sys.stdout.isatty() else f"`{_token_command(settings)}` shows it"
    write(f"  admin key  {shown}\n")
    if known.buyer_token is not None:
        write(f"  buyer      {known.buyer_token}\n")
        if known.sale_id is not None:
            sandbox = settings.payment_provider == Sandbox.name
            _show_how_to_buy(address, known.buyer_token, known.sale_id, sandbox=sandbox)
    if demo and known.sale_id is None:
        write(f"\nNo sale is open now: `{_ourselves()} sale create TITLE --units N` makes one.\n")
    write(f"\nCtrl-C stops everything; {'nothing is kept' if settings.in_memory else 'the data stays'}.\n\n")
    sys.stdout.flush()


def _token_command(settings: Settings) -> str:
    """Returns the command as it works in the folder in which we were started."""
    command = f"{_ourselves()} token admin"
    if settings.data_dir == Settings().data_dir.absolute():
        return command
    return f"SECKILL_DATA_DIR={shlex.quote(str(settings.data_dir))} {command}"


def _ourselves() -> str:
    """Returns our own command: as it was typed, if `seckill` alone is not found."""
    typed = sys.argv[0]
    return shlex.quote(typed) if Path(typed).name == "seckill" and shutil.which("seckill") is None else "seckill"


def _show_how_to_buy(address: str, token: str, sale_id: str, *, sandbox: bool) -> None:
    write = sys.stdout.write
    bearer = '-H "Authorization: Bearer $TOKEN"'
    write("\nBuy one, then look at the order:\n\n")
    write(f"  TOKEN={token}\n")
    write(f"  curl -i -w '\\n' -X POST {address}/v1/sales/{sale_id}/orders {bearer} -H 'Idempotency-Key: my first'\n")
    write(f"  curl -w '\\n' {address}/v1/orders {bearer}\n")
    if sandbox:
        write("\nPay for it, with the order_id that you got in place of ORDER (a sandbox: no money moves):\n\n")
        write(f"  curl -w '\\n' -X POST {address}/v1/orders/ORDER/pay {bearer}\n")
