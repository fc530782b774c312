"""The servers of a run: our own by name, or given by address."""

from collections.abc import Callable, Mapping
from pathlib import Path

from seckill.lab.chaos.servers.rabbitmq import RabbitServer
from seckill.lab.chaos.servers.replicated import cluster, sentinel
from seckill.lab.chaos.servers.server import FaultyServer
from seckill.lab.chaos.servers.sqlite import SqliteFile
from seckill.lab.chaos.servers.valkey import ValkeyServer

LANES = 2  # enough to have more than one, and few enough to meet in them


def _postgres(folder: Path) -> FaultyServer:
    from seckill.lab.chaos.servers.postgres import PostgresServer  # noqa: PLC0415 (its driver may not be installed)

    return PostgresServer(folder)


def _mariadb(folder: Path) -> FaultyServer:
    from seckill.lab.chaos.servers.mariadb import MariaDBServer  # noqa: PLC0415 (the same)

    return MariaDBServer(folder)


# By the names that --redis, --database and --broker take. Each server is made in an empty folder of its own.
GATES: Mapping[str, Callable[[Path], FaultyServer]] = {
    "valkey": lambda folder: ValkeyServer(folder, LANES),
    "cluster": cluster,
    "sentinel": sentinel,
}
LEDGERS: Mapping[str, Callable[[Path], FaultyServer]] = {
    "sqlite": SqliteFile,
    "postgres": _postgres,
    "mariadb": _mariadb,
}
BROKERS: Mapping[str, Callable[[Path], FaultyServer]] = {"rabbitmq": RabbitServer}
