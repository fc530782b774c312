"""Everything on this machine with one command."""

import asyncio
import contextlib
import os
import secrets
import shlex
import shutil
import socket
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from seckill.cli.client import ADDRESS_FILE, DIRECT, shown_host
from seckill.cli.configuring import environment, with_embedded, with_secrets
from seckill.cli.parameters import OptionalWhole
from seckill.cli.roles import keeper_role, worker_role
from seckill.cli.running import run
from seckill.domain import Sale, SaleDraft, SaleState
from seckill.embedded.data_folder import DataFolder
from seckill.embedded.supervisor import Process, Server, Supervisor
from seckill.embedded.valkey import EmbeddedValkey
from seckill.errors import SettingsError, StartError
from seckill.ledgers.migrating import migrate, pending
from seckill.loops import Stop
from seckill.operator_desk import OperatorDesk
from seckill.providers import Sandbox
from seckill.settings import TABLE, Secret, Settings
from seckill.transports.amqp import check_broker
from seckill.web.auth import mint_buyer_token
from seckill.web.schemas import to_ms
from seckill.web.server import bind, serve
from seckill.wiring import Engine, new_memory, open_engine

READY_WITHIN_S = 30.0
POLL_S = 0.1
API_PROCESSES = 2
API_MAX = 64
KEEPS_NOTHING = "none, it keeps nothing: everything is gone when it stops"


def up(
    *,
    demo: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    host: str | None = None,
    port: OptionalWhole = None,
    data: Path | None = None,
    api: OptionalWhole = None,
) -> None:
    """Run everything on this machine: embedded servers unless URLs are set, API, worker and keeper.

    With `SECKILL_REDIS_URL=memory://` all of it is one process that needs no server and keeps nothing.

    Parameters
    ----------
    demo
        Create two sales to try things out, if there is none yet, and let anybody sign in under any name.
    host
        Address to listen on; 0.0.0.0 for all.
    port
        Port to listen on; 0 takes any free one.
    data
        Folder for data and secrets.
    api
        Number of API processes; 2 if it is not given.
    """
    if api is not None and not 1 <= api <= API_MAX:
        raise StartError(f"--api must be from 1 to {API_MAX}.")
    settings = environment(data=data, host=host, port=port)
    if settings.in_memory:
        _check_memory(settings, api)
    if demo:
        settings = replace(settings, demo_sign_in="on")
    os.umask(0o077)  # whatever we and our servers write is nobody else's
    with DataFolder.open(settings.data_dir) as folder:
        settings = with_secrets(replace(settings, data_dir=folder.path), folder.secrets())

        async def main(stop: Stop) -> None:
            if settings.in_memory:
                await _up_in_memory(settings, stop, demo=demo)
            else:
                await _up(settings, stop, demo=demo, api=api or API_PROCESSES)

        run(main, settings)


async def _up(settings: Settings, stop: Stop, *, demo: bool, api: int) -> None:
    embedded = not settings.redis_url
    settings = with_embedded(settings)
    supervisor = Supervisor()
    with contextlib.closing(bind(settings.host, settings.port)) as listener:
        try:
            await _prepare_ledger(settings)
            if embedded:
                await supervisor.add(Server(EmbeddedValkey(settings.data_dir, durability=settings.durability)))
            async with open_engine(settings) as engine:  # refuses unsuitable servers before any role is started
                sale_id = await _demo_sale(engine, settings) if demo else None
            await _start_roles(supervisor, settings, listener.fileno(), api)
            await _announce(settings, listener, stop, sale_id, demo=demo)
        finally:
            await supervisor.stop()


async def _up_in_memory(settings: Settings, stop: Stop, *, demo: bool) -> None:
    """API, worker and keeper as tasks of this process, on a store and a ledger that are gone when it stops."""
    memory, last = new_memory(), Stop()
    with (
        tempfile.TemporaryDirectory(prefix="seckill-") as folder,
        contextlib.closing(bind(settings.host, settings.port)) as listener,
    ):
        settings = replace(settings, database_url=f"sqlite:///{folder}/ledger.db")
        await migrate(settings.database_url)
        async with open_engine(settings, memory) as engine:
            sale_id = await _demo_sale(engine, settings) if demo else None
        api = asyncio.create_task(serve(settings, listener, stop, memory))
        behind = [asyncio.ensure_future(role(settings, memory)(last)) for role in (worker_role, keeper_role)]
        for task in (api, *behind):
            task.add_done_callback(lambda _: stop.set())  # one that ends takes the others with it
        try:
            await _announce(settings, listener, stop, sale_id, demo=demo)
        finally:
            stop.set()
            try:
                await api
            finally:
                last.set()  # only now: the worker still writes what the API has accepted
                await asyncio.gather(*behind)


def _check_memory(settings: Settings, api: int | None) -> None:
    problems = [
        f"memory:// keeps nothing and needs no other server: leave {variable} empty."
        for variable, value in [
            ("SECKILL_DATABASE_URL", settings.database_url),
            ("SECKILL_BROKER_URL", settings.broker_url),
        ]
        if value
    ]
    if api not in (None, 1):
        problems.append("memory:// is the memory of one process: leave out --api.")
    if problems:
        raise SettingsError(problems)


async def _announce(
    settings: Settings, listener: socket.socket, stop: Stop, sale_id: str | None, *, demo: bool
) -> None:
    """Tells where it is as soon as it answers, until it is told to stop."""
    address = f"http://{shown_host(settings.host)}:{listener.getsockname()[1]}"
    noted = settings.data_dir / ADDRESS_FILE
    noted.unlink(missing_ok=True)  # of a run that was killed
    await _until_ready(address, stop)
    try:
        noted.write_text(address + "\n")
        if not stop.is_set():
            greet(settings, address, sale_id, demo=demo)
        await stop.wait()
    finally:
        if stop.is_set():
            Console(stderr=True).print("Stopping: finishing what was accepted …", style="dim")
        noted.unlink(missing_ok=True)


async def _prepare_ledger(settings: Settings) -> None:
    if settings.broker_url:
        await check_broker(settings.broker_url)  # refused before anything is started
    await pending(settings.database_url)  # a database that does not answer is given up sooner than by a migration
    await migrate(settings.database_url)


async def _start_roles(supervisor: Supervisor, settings: Settings, listener: int, api: int) -> None:
    environ = _environ(settings)
    await supervisor.add(Process("worker", ["worker"], environ))
    await supervisor.add(Process("keeper", ["keeper"], environ))
    for number in range(1, api + 1):
        await supervisor.add(Process(f"api {number}", ["api", "--fd", str(listener)], environ, fds=[listener]))


def _environ(settings: Settings) -> dict[str, str]:
    """The settings as they are now, for the processes that we start."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    environ |= {"SECKILL_FAILPOINTS": os.environ.get("SECKILL_FAILPOINTS", "")}
    for setting in TABLE:
        value = getattr(settings, setting.name)
        if isinstance(value, Secret):
            value = value.reveal()
        if value is not None:
            text = ",".join(f"{item:g}" for item in value) if isinstance(value, tuple) else str(value)
            environ[setting.variable] = text
    metrics = settings.data_dir / "metrics"  # of this run only: old files would count twice
    shutil.rmtree(metrics, ignore_errors=True)
    metrics.mkdir(mode=0o700)
    return environ | {"PROMETHEUS_MULTIPROC_DIR": str(metrics)}


async def _until_ready(address: str, stop: Stop) -> None:
    def ready() -> bool:
        try:
            with DIRECT.open(f"{address}/readyz", timeout=2) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    give_up_at = time.monotonic() + READY_WITHIN_S
    while not stop.is_set() and not await asyncio.to_thread(ready):
        if time.monotonic() > give_up_at:
            raise StartError(f"The API was not ready within {READY_WITHIN_S:.0f} s: the log above says why.")
        await stop.wait(POLL_S)


async def _demo_sale(engine: Engine, settings: Settings) -> str | None:
    """Makes two sales once: goods with a price and a free voucher. Returns the id of the first that is open now."""
    sales = await engine.ledger.sales()
    now = datetime.now(UTC)
    if not sales:
        desk = OperatorDesk(engine.ledger, engine.gate)
        for lane, (title, units, price_cents) in enumerate(
            [("Demo phone · 演示手机", 100, 99_00), ("Demo voucher · 演示优惠券", 1000, 0)]
        ):
            draft = SaleDraft(
                title=title,
                units=units,
                limit_per_buyer=1,
                price_cents=price_cents,
                currency="CNY",
                begins_ms=to_ms(now),
                ends_ms=to_ms(now + timedelta(days=30)),
                pay_within_s=settings.pay_within_s,
            )
            sales.append(await desk.announce(draft, lane % settings.lanes))
    for sale in sales:
        if await _is_open(engine, sale, to_ms(now)):
            return engine.sale_ids.encode(sale.id)
    return None


async def _is_open(engine: Engine, sale: Sale, now_ms: int) -> bool:
    view = await engine.gate.inspect(sale.round.ref)
    sold_out = view is not None and view.available == 0
    return sale.state(now_ms, sold_out) is SaleState.OPEN


def greet(settings: Settings, address: str, sale_id: str | None, *, demo: bool) -> None:
    """Where it is, and lines to copy. To stdout, so that it can be told from the log."""
    write = sys.stdout.write
    write(f"\nseckill is running at {address}\n\n")
    write(f"  buy        {address}/\n")
    write(f"  console    {address}/console\n")
    write(f"  API docs   {address}/docs\n")
    write(f"  data       {KEEPS_NOTHING if settings.in_memory else settings.data_dir}\n")
    assert settings.admin_key is not None
    # What is not a terminal may be a log that others read.
    shown = settings.admin_key.reveal() if sys.stdout.isatty() else f"`{_token_command(settings)}` shows it"
    write(f"  admin key  {shown}\n")
    if settings.jwt_secret is not None:
        token = mint_buyer_token(
            settings.jwt_secret,
            f"demo-{secrets.token_hex(3)}",
            lifetime_s=24 * 3600,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            now=time.time(),
        )
        write(f"  buyer      {token}\n")
        if sale_id is not None:
            _show_how_to_buy(address, token, sale_id, sandbox=settings.payment_provider == Sandbox.name)
    if demo and sale_id is None:
        write("\nNo sale is open now: `seckill sale create TITLE --units N` makes one.\n")
    write(f"\nCtrl-C stops everything; {'nothing is kept' if settings.in_memory else 'the data stays'}.\n\n")
    sys.stdout.flush()


def _token_command(settings: Settings) -> str:
    """As it works in the folder that we were started in."""
    command = "seckill token admin"
    if settings.data_dir == Settings().data_dir.absolute():
        return command
    return f"SECKILL_DATA_DIR={shlex.quote(str(settings.data_dir))} {command}"


def _show_how_to_buy(address: str, token: str, sale_id: str, *, sandbox: bool) -> None:
    write = sys.stdout.write
    bearer = '-H "Authorization: Bearer $TOKEN"'
    write("\nBuy one, then look at the order:\n\n")
    write(f"  TOKEN={token}\n")
    write(f"  curl -i -w '\\n' -X POST {address}/v1/sales/{sale_id}/orders {bearer}\n")
    write(f"  curl -w '\\n' {address}/v1/orders {bearer}\n")
    if sandbox:
        write("\nPay for it, with the order_id that you got in place of ORDER (a sandbox: no money moves):\n\n")
        write(f"    curl -w '\\n' -X POST {address}/v1/orders/ORDER/pay {bearer}\n")
