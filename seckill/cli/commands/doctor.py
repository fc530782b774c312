"""Checks the set-up and says what to mend."""

import os
import platform
import sqlite3
import sys
from collections.abc import Awaitable, Callable

from rich.console import Console
from rich.markup import escape

from seckill import __version__
from seckill.backends.payment.provider_choice import open_provider
from seckill.backends.sql import open_ledger
from seckill.backends.sql.schema import Schema, schema_of
from seckill.bootstrap.engine import fingerprint, open_engine, open_gate
from seckill.bootstrap.use_cases import UseCases
from seckill.cli.async_command import run
from seckill.cli.command_settings import environment, with_data_folder
from seckill.cli.exit_codes import EXIT_BROKEN
from seckill.cli.output import console, table
from seckill.errors import SeckillError
from seckill.extras import explained
from seckill.local.valkey import find_server
from seckill.loops import Stop
from seckill.native.kernel_choice import KERNEL
from seckill.native.ring_choice import open_ring
from seckill.operations.doctor.certificate import check_served_certificate
from seckill.operations.doctor.database import examine_database
from seckill.operations.doctor.examination import Health
from seckill.operations.doctor.gate import examine_gate
from seckill.operations.doctor.tracing import examine_tracing
from seckill.operations.doctor.watching import examine_watching
from seckill.operations.production_refusals import make_believe
from seckill.ports.payment import PaymentProvider, has_checkout
from seckill.settings import TABLE, Settings, missing_for_payment, shown
from seckill.settings.otel import Tracing
from seckill.web.buyers.buyer_tokens import Buyers
from seckill.web.buyers.key_set import KeySet
from seckill.web.buyers.token_keys import TokenKeys
from seckill.web.connections.connection_limits import Room, descriptors
from seckill.web.operators.sign_in_examination import examine_sign_in

CONNECTIONS_ADVISED = 10_000

Check = Callable[[Settings], Awaitable[str | Health]]


def doctor() -> None:
    """Check the set-up, list every setting, and say what to mend. Exit code 1 if something is wrong."""
    settings = with_data_folder(environment())
    output = console()
    _print_settings(output, settings)

    async def main(_: Stop) -> bool:
        results = [await _run(output, name, check, settings) for name, check in CHECKS.items()]
        return all(results)

    if not run(main, settings):
        sys.exit(EXIT_BROKEN)


def _print_settings(output: Console, settings: Settings) -> None:
    listed = table("setting", "value", "", "what it is")
    for setting in TABLE:
        given = "set" if os.environ.get(setting.variable) else ""
        listed.add_row(setting.variable, shown(setting, settings) or "–", given, setting.sentence)
    output.print(listed)


async def _run(output: Console, name: str, check: Check, settings: Settings) -> bool:
    try:
        found = await check(settings)
    except SeckillError as error:
        output.print(f"[red]mend[/]  {name}: {escape(str(error))}")
        return False
    except Exception as error:  # the other checks must be shown, too
        output.print(f"[red]mend[/]  {name}: {escape(f'something unexpected went wrong ({error!r})')}")
        return False
    health = found if isinstance(found, Health) else Health(found)
    if not health.mend:
        output.print(f"[green]ok[/]    {name}: {escape(health.says)}")
    for sentence in health.mend:
        output.print(f"[red]mend[/]  {name}: {escape(sentence)}")
    for sentence in health.advice:
        output.print(f"[yellow]note[/]  {name}: {escape(sentence)}")
    return not health.mend


async def _python(_: Settings) -> str:
    reads = (
        "a compiled kernel reads claims" if KERNEL else "Python reads claims, `python -m seckill.native` compiles that"
    )
    sends = (
        "all answers to a batch are sent in one call"
        if open_ring()
        else "answers are sent one by one, without io_uring"
    )
    python, sqlite = platform.python_version(), sqlite3.sqlite_version
    return f"seckill {__version__}, Python {python}, SQLite {sqlite}; {reads}; {sends}"


async def _embedded(settings: Settings) -> str:
    if settings.redis_url and not settings.redis_url.startswith("unix:"):
        return "not needed, SECKILL_REDIS_URL is set"
    return str(find_server())


def _is_given() -> bool:
    """Whether a gate is configured. Otherwise it is the one that `seckill up` starts."""
    return bool(os.environ.get("SECKILL_REDIS_URL"))


def _absent_gate(settings: Settings) -> str | None:
    """Returns why there is no gate to ask, if there need not be one."""
    if settings.in_memory:
        return "in the memory of `seckill up`, which keeps nothing"
    if not settings.redis_url:
        return "none configured; `seckill up` starts one of its own"
    if not _is_given() and not (settings.data_dir / "valkey.sock").exists():
        return "not running; `seckill up` starts it"
    return None


async def _gate(settings: Settings) -> str | Health:
    if absent := _absent_gate(settings):
        return absent
    gate = open_gate(settings)
    try:
        advice = await gate.check(settings.durability)
    finally:
        await gate.close()
    health = await examine_gate(settings.redis_url, settings.durability, embedded=not _is_given())
    if settings.replicas_to_wait_for:
        many = settings.replicas_to_wait_for
        health.says += f", orders are on {many} replica{'' if many == 1 else 's'} before they are answered"
    health.advice += advice
    return health


async def _ledger(settings: Settings) -> str | Health:
    if not settings.database_url:
        lasting = "has one for as long as it runs" if settings.in_memory else "keeps one in SQLite"
        return f"none configured; `seckill up` {lasting}"
    if await schema_of(settings.database_url) is Schema.BEHIND:
        raise SeckillError("the schema is behind this version: run `seckill migrate`.")
    ledger = open_ledger(settings.database_url)
    try:
        await ledger.ping()
    finally:
        await ledger.close()
    health = await examine_database(settings.database_url)
    health.says += ", schema up to date"
    return health


async def _broker(settings: Settings) -> Health:
    if not settings.broker_url:
        return Health("none configured; workers read the streams")
    with explained():
        from seckill.backends.rabbitmq.connections import check_broker  # noqa: PLC0415 (most do without a broker)
        from seckill.backends.rabbitmq.topology import Topology  # noqa: PLC0415 (as above)
        from seckill.bootstrap.rabbitmq import open_broker  # noqa: PLC0415 (as above)

    version = await check_broker(settings.broker_url)
    if version is None:
        raise SeckillError(
            "RabbitMQ does not answer: start it, or correct host and port of SECKILL_BROKER_URL; until then orders "
            "wait in the streams."
        )
    if not settings.database_url or await schema_of(settings.database_url) is Schema.BEHIND:
        return Health(f"RabbitMQ {version} answers; its queues are named after the ledger, which is not there yet")
    ledger = open_ledger(settings.database_url)
    try:
        topology = Topology(fingerprint(await ledger.id_key()), settings.retry_delays_s)
    finally:
        await ledger.close()
    await open_broker(settings.broker_url, topology)
    health = Health(f"RabbitMQ {version} answers, {topology.prefix}.* is there and may be used")
    if settings.broker_url.startswith("amqps:"):
        await check_served_certificate(health, "RabbitMQ", settings.broker_url)
    return health


async def _rounds(settings: Settings) -> str:
    if _absent_gate(settings) or not settings.database_url:
        return "there is no gate and ledger to compare yet"
    async with open_engine(settings) as engine:
        lost = await UseCases(engine, settings).losses.find()
    if lost:
        raise SeckillError(f"the gate has lost {len(lost)}: `seckill keeper` (or `seckill up`) rebuilds them.")
    return "the gate has all that are on"


async def _secrets(settings: Settings) -> str:
    if settings.admin_key is None or not settings.knows_buyers:
        return "none set; `seckill up` makes its own, the roles on their own refuse to start"
    Buyers(settings, TokenKeys(settings, KeySet.of(settings.jwks_url)))
    if not settings.jwks_url:
        return "there"
    keys = len(await KeySet(settings.jwks_url).fetch())
    return f"there, and the issuer of buyers' tokens shows {keys} key{'' if keys == 1 else 's'}"


async def _payment(settings: Settings) -> Health:
    if missing := missing_for_payment(settings):
        return Health("", mend=missing)
    provider = open_provider(settings)
    try:
        return Health(await _through(settings, provider), advice=_currency_advice(provider))
    finally:
        if (close := getattr(provider, "close", None)) is not None:
            await close()


def _currency_advice(provider: PaymentProvider) -> list[str]:
    if not has_checkout(provider) or provider.currencies is None:
        return []
    return [f"Only sales in {', '.join(sorted(provider.currencies))} can be paid through {provider.name}."]


async def _through(settings: Settings, provider: PaymentProvider) -> str:
    if provider.sandbox:
        return "a sandbox: buyers pay by pressing a button, no money moves; for trying things out only"
    if settings.payment_provider == "callback" and settings.payment_secret is None:
        raise SeckillError("set SECKILL_PAYMENT_SECRET: callbacks and refund requests are signed with it.")
    if (check := getattr(provider, "check", None)) is not None:
        return f"through {provider.name}: {await check()}"
    return f"through {provider.name}"


async def _rehearsal(settings: Settings) -> Health:
    found = [f"{sentence}." for sentence in make_believe(settings, open_provider(settings))]
    if not found:
        is_test = settings.rehearsal == "on"
        return Health("on, but nothing here is make-believe" if is_test else "off, and nothing here is make-believe")
    if settings.rehearsal == "on":
        return Health("on: this is a test, and every page says so", advice=found)
    if _is_given() and not settings.in_memory:  # by an operator, for roles that run on their own
        return Health("", mend=[*found, "The roles refuse to start like this, unless SECKILL_REHEARSAL=on."])
    return Health("`seckill up` is a test and its pages say so; the roles on their own refuse to start", advice=found)


async def _connections(settings: Settings) -> Health:
    room = Room.of(settings, descriptors())
    health = Health(
        f"an API process takes {room.in_all} connections, {room.per_address} of them from one address; it may open "
        f"{descriptors()} files"
    )
    if room.in_all < CONNECTIONS_ADVISED:
        health.advice.append("A rush is thousands of connections: allow more open files (LimitNOFILE, ulimit -n).")
    return health


async def _watching(settings: Settings) -> Health:
    return await examine_watching(settings, for_good=_is_given() and not settings.in_memory)


async def _tracing(settings: Settings) -> Health:
    return await examine_tracing(settings, Tracing.from_environment())


CHECKS: dict[str, Check] = {
    "software": _python,
    "embedded server": _embedded,
    "gate": _gate,
    "ledger": _ledger,
    "broker": _broker,
    "rounds": _rounds,
    "secrets": _secrets,
    "sign-in": examine_sign_in,
    "payment": _payment,
    "rehearsal": _rehearsal,
    "connections": _connections,
    "watching": _watching,
    "tracing": _tracing,
}
