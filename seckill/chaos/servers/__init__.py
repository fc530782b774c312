"""The servers of a run: of our own by name, or given by address."""

from collections.abc import Callable, Mapping
from pathlib import Path

from seckill.chaos.servers.cluster import ClusterServer
from seckill.chaos.servers.mariadb import MariaDBServer
from seckill.chaos.servers.postgres import PostgresServer
from seckill.chaos.servers.rabbitmq import RabbitServer
from seckill.chaos.servers.server import Can as Can
from seckill.chaos.servers.server import Forgetful as Forgetful
from seckill.chaos.servers.server import Server as Server
from seckill.chaos.servers.sqlite import SqliteFile
from seckill.chaos.servers.valkey import ValkeyServer

LANES = 2  # enough to have more than one, and few enough to meet in them

# By the name that --redis, --database and --broker know; each is made in an empty folder of its own.
GATES: Mapping[str, Callable[[Path], Server]] = {
    "valkey": lambda folder: ValkeyServer(folder, LANES),
    "cluster": ClusterServer,
}
LEDGERS: Mapping[str, Callable[[Path], Server]] = {
    "sqlite": SqliteFile,
    "postgres": PostgresServer,
    "mariadb": MariaDBServer,
}
BROKERS: Mapping[str, Callable[[Path], Server]] = {"rabbitmq": RabbitServer}
