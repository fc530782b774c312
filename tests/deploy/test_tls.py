"""TLS to every server, with a certificate authority of the test's own; one that another has signed is refused."""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import open_engine
from seckill.errors import SeckillError
from seckill.lab.servers.mariadb import EmbeddedMariaDB, find_mariadb
from seckill.lab.servers.ports import free_port
from seckill.local.valkey import EmbeddedValkey
from seckill.operations.doctor.certificate import check_served_certificate
from seckill.operations.doctor.database import examine_database
from seckill.operations.doctor.examination import Health
from seckill.operations.doctor.gate import examine_gate
from seckill.settings import Settings
from tests.api.conftest import make_node, settings_of_a_node
from tests.deploy.authority import Authority
from tests.fixtures import missing
from tests.fixtures.mariadb import _start, execute
from tests.fixtures.postgres import PostgresServer, apart
from tests.fixtures.rabbitmq import RabbitServer
from tests.fixtures.valkey import redis_program


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("right"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("wrong"))


async def sells(settings: Settings) -> None:
    """Gate, streams and ledger, the auditor's own connections, and the broker if there is one."""
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        sale = await node.create(units=1)
        assert (await node.buy(sale, "ann")).status_code == 202
        if engine.broker is None:
            await node.work()
        assert engine.auditor is not None
        assert not (await engine.auditor.read(full=True)).reasons()
        await node.http.aclose()


def ends_soon(health: Health) -> str:
    """Returns whose certificate ends soon, by the doctor's notes: the authority's are good for a day."""
    found = [re.match("The TLS certificate of (.*) ends in 0 days", sentence) for sentence in health.advice]
    return next((match[1] for match in found if match), "")


async def refused(settings: Settings) -> None:
    """Checks that a certificate that does not convince is refused in one sentence."""
    with pytest.raises(SeckillError, match=r"certificate is not believed|certificate verify failed") as told:
        async with open_engine(settings):
            pass
    assert "\n" not in str(told.value)


@pytest.fixture
async def secure_redis(authority: Authority) -> AsyncIterator[str]:
    """Redis 7, which Debian builds with TLS."""
    port = free_port()
    options = {
        "tls-port": str(port),
        "tls-cert-file": str(authority.cert),
        "tls-key-file": str(authority.key),
        "tls-ca-cert-file": str(authority.ca),
        "tls-auth-clients": "no",
    }
    with tempfile.TemporaryDirectory(prefix="sk") as folder:
        server = EmbeddedValkey(Path(folder), durability="fast", program=redis_program(), options=options)
        await server.start()
        await server.ready()
        yield f"rediss://127.0.0.1:{port}/0"
        await server.stop()


async def test_redis(secure_redis: str, sqlite_database: str, authority: Authority, stranger: Authority) -> None:
    right = f"{secure_redis}?ssl_ca_certs={authority.ca}"
    await sells(settings_of_a_node(right, sqlite_database))
    assert ends_soon(await examine_gate(right, "fast")) == "Valkey/Redis"
    for query in (f"?ssl_ca_certs={stranger.ca}", ""):  # without: the authorities that the machine knows
        await refused(settings_of_a_node(f"{secure_redis}{query}", sqlite_database))


@pytest.fixture
def secure_postgres(postgres_server: PostgresServer, own_postgres_database: str, authority: Authority) -> Iterator[str]:
    data = postgres_server._server._folder / "data"
    for path in (authority.cert, authority.key):
        copied = shutil.copy(path, data / path.name)
        os.chown(copied, data.stat().st_uid, data.stat().st_gid)
        Path(copied).chmod(0o600)
    for name, value in (("ssl_cert_file", authority.cert.name), ("ssl_key_file", authority.key.name), ("ssl", "on")):
        postgres_server.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    postgres_server.execute("SELECT pg_reload_conf()")
    yield own_postgres_database
    postgres_server.execute("ALTER SYSTEM RESET ssl")
    postgres_server.execute("SELECT pg_reload_conf()")


async def test_postgres(redis_url: str, secure_postgres: str, authority: Authority, stranger: Authority) -> None:
    url = f"{secure_postgres}?sslmode=verify-full"
    await sells(settings_of_a_node(redis_url, f"{url}&sslrootcert={authority.ca}"))
    assert ends_soon(await examine_database(f"{url}&sslrootcert={authority.ca}")) == "the database"
    assert ends_soon(await examine_database(secure_postgres + "?sslmode=disable")) == ""
    await refused(settings_of_a_node(redis_url, f"{url}&sslrootcert={stranger.ca}"))


class SecureMariaDB(EmbeddedMariaDB):
    authority: Authority

    def _command(self) -> list[str]:
        its = self.authority
        return [*super()._command(), f"--ssl-cert={its.cert}", f"--ssl-key={its.key}", f"--ssl-ca={its.ca}"]


@pytest.fixture
def secure_mariadb(authority: Authority) -> Iterator[str]:
    if find_mariadb() is None:
        missing("MariaDB is not installed: scripts/get-servers fetches it")
    with tempfile.TemporaryDirectory(prefix="skmy", ignore_cleanup_errors=True) as folder:
        server = SecureMariaDB(Path(folder))
        server.authority = authority
        asyncio.run(_start(server))
        try:
            execute(server, "CREATE DATABASE secure")
            yield server.url("secure")
        finally:
            apart(server.stop())


async def test_mariadb(redis_url: str, secure_mariadb: str, authority: Authority, stranger: Authority) -> None:
    right = f"{secure_mariadb}?ssl_ca={authority.ca}"
    await migrate(right)
    await sells(settings_of_a_node(redis_url, right))
    assert ends_soon(await examine_database(right)) == "the database"
    for query in (f"?ssl_ca={stranger.ca}", "?ssl=true"):
        await refused(settings_of_a_node(redis_url, f"{secure_mariadb}{query}"))


@asynccontextmanager
async def secured(url: str, authority: Authority) -> AsyncIterator[str]:
    """A listener with TLS, from which everything goes to RabbitMQ: what its own is on the wire, but for its start."""
    host, port = url.rpartition("@")[2].partition("/")[0].split(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while piece := await source.read(65536):
                target.write(piece)
                await target.drain()
            target.close()

        await asyncio.gather(pass_on(reader, back), pass_on(there, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=authority.served())
    own = server.sockets[0].getsockname()[1]
    yield url.replace("amqp://", "amqps://").replace(f":{port}/", f":{own}/")
    server.close()


async def test_rabbitmq(
    redis_url: str, sqlite_database: str, rabbit: RabbitServer, authority: Authority, stranger: Authority
) -> None:
    plain = settings_of_a_node(redis_url, sqlite_database)
    async with secured(rabbit.url(), authority) as url:
        await sells(replace(plain, broker_url=f"{url}?cafile={authority.ca}"))
        await refused(replace(plain, broker_url=f"{url}?cafile={stranger.ca}"))
        health = Health("")
        await check_served_certificate(health, "RabbitMQ", url)
        assert ends_soon(health) == "RabbitMQ"
