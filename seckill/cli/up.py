"""Everything on this machine with one command."""

import asyncio
import contextlib
import os
import shutil
import sys
import time
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from seckill.cli.client import ADDRESS_FILE
from seckill.cli.running import environment, run, with_embedded, with_secrets
from seckill.domain import SaleDraft
from seckill.embedded.data_folder import DataFolder
from seckill.embedded.supervisor import Process, Server, Supervisor
from seckill.embedded.valkey import EmbeddedValkey
from seckill.errors import StartError
from seckill.ledgers.migrating import migrate
from seckill.loops import Stop
from seckill.operator_desk import OperatorDesk
from seckill.settings import TABLE, Secret, Settings
from seckill.web.auth import mint_buyer_token
from seckill.web.schemas import to_ms
from seckill.web.server import bind
from seckill.wiring import open_engine

READY_WITHIN_S = 30.0
POLL_S = 0.1
API_MAX = 64


def up(
    *,
    demo: Annotated[bool, Parameter(negative=())] = False,
    host: str | None = None,
    port: int | None = None,
    data: Path | None = None,
    api: int = 2,
) -> None:
    """Run everything on this machine: embedded servers unless URLs are set, API, worker and keeper.

    Parameters
    ----------
    demo
        Create two sales to try things out, if there is none yet.
    host
        Address to listen on.
    port
        Port to listen on.
    data
        Folder for data and secrets.
    api
        Number of API processes.
    """
    if not 1 <= api <= API_MAX:
        raise StartError(f"--api must be from 1 to {API_MAX}.")
    settings = environment(data=data, host=host, port=port)
    with DataFolder.open(settings.data_dir) as folder:
        secrets = folder.secrets()
        settings = with_secrets(replace(settings, data_dir=folder.path), secrets.jwt_secret, secrets.admin_key)

        async def main(stop: Stop) -> None:
            await _up(settings, stop, demo=demo, api=api)

        run(main, settings)


async def _up(settings: Settings, stop: Stop, *, demo: bool, api: int) -> None:
    embedded = not settings.redis_url
    settings = with_embedded(settings)
    supervisor = Supervisor()
    with contextlib.closing(bind(settings.host, settings.port)) as listener:
        address = f"http://{_shown_host(settings.host)}:{listener.getsockname()[1]}"
        try:
            if embedded:
                await supervisor.add(Server(EmbeddedValkey(settings.data_dir, durability=settings.durability)))
            await migrate(settings.database_url)
            demo_sale = await _demo_sale(settings) if demo else None
            environ = _environ(settings)
            await supervisor.add(Process("worker", ["worker"], environ))
            await supervisor.add(Process("keeper", ["keeper"], environ))
            for number in range(1, api + 1):
                arguments = ["api", "--fd", str(listener.fileno())]
                await supervisor.add(Process(f"api {number}", arguments, environ, fds=[listener.fileno()]))
            await _until_ready(address, stop)
            (settings.data_dir / ADDRESS_FILE).write_text(address + "\n")
            if not stop.is_set():
                _greet(settings, address, demo_sale)
            await stop.wait()
        finally:
            Console(stderr=True).print("Stopping: finishing what was accepted …", style="dim")
            await supervisor.stop()


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
            with urllib.request.urlopen(f"{address}/readyz", timeout=2) as response:  # noqa: S310 (our own address)
                return bool(response.status == 200)
        except OSError:
            return False

    give_up_at = time.monotonic() + READY_WITHIN_S
    while not stop.is_set() and not await asyncio.to_thread(ready):
        if time.monotonic() > give_up_at:
            raise StartError(f"The API was not ready within {READY_WITHIN_S:.0f} s: the log above says why.")
        await stop.wait(POLL_S)


async def _demo_sale(settings: Settings) -> str:
    """Makes two sales once: goods with a price and a free voucher. Returns the id of the first sale there is."""
    async with open_engine(settings) as engine:
        sales = await engine.ledger.sales()
        if not sales:
            now = datetime.now(UTC)
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
        return engine.sale_ids.encode(sales[0].id)


def _greet(settings: Settings, address: str, sale_id: str | None) -> None:
    """Where it is, and lines to copy. To stdout, so that it can be told from the log."""
    write = sys.stdout.write
    write(f"\nseckill is running at {address}\n\n")
    write(f"  API docs   {address}/docs\n")
    write(f"  data       {settings.data_dir}\n")
    assert settings.admin_key is not None
    write(f"  admin key  {settings.admin_key.reveal()}\n")
    if settings.jwt_secret is not None:
        token = mint_buyer_token(
            settings.jwt_secret,
            "demo-buyer",
            lifetime_s=24 * 3600,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            now=time.time(),
        )
        write(f"  buyer      {token}\n")
        if sale_id is not None:
            write("\nBuy one, then look at the order:\n\n")
            write(f"  TOKEN={token}\n")
            write(f'  curl -i -X POST {address}/v1/sales/{sale_id}/orders -H "Authorization: Bearer $TOKEN"\n')
            write(f'  curl {address}/v1/orders -H "Authorization: Bearer $TOKEN"\n')
    write("\nCtrl-C stops everything; the data stays.\n\n")
    sys.stdout.flush()


def _shown_host(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 (shown, not bound)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
