"""Settings about where the servers are, and where the API listens."""

from dataclasses import dataclass, field
from pathlib import Path

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    redis_url: str = field(
        default="",
        metadata=about(
            kinds.url("redis", "rediss", "unix", "memory"),
            "Where Valkey or Redis is, also `redis+cluster://…` or `redis+sentinel://…/name`; when empty, `seckill up` "
            "starts one of its own; `memory://` keeps nothing.",
        ),
    )
    database_url: str = field(
        default="",
        metadata=about(
            kinds.url("sqlite", "postgresql", "postgres", "mysql", "mariadb"),
            "Where the ledger is; when empty, `seckill up` keeps it in SQLite in the data folder.",
        ),
    )
    broker_url: str = field(
        default="",
        metadata=about(
            kinds.url("amqp", "amqps"),
            "RabbitMQ, to carry orders from the streams to the workers; when empty, workers read the streams.",
        ),
    )
    alarm_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where alarms are sent to, as a POST with JSON; when empty, they are only logged.",
        ),
    )
    data_dir: Path = field(
        default=Path(".seckill"),
        metadata=about(Path, "Folder in which `seckill up` keeps its servers' data and its secrets."),
    )
    host: str = field(default="127.0.0.1", metadata=about(str, "Address that the API listens on."))
    port: int = field(
        default=8000,
        metadata=about(kinds.whole(0, 65_535), "Port that the API listens on; 0 takes any free one."),
    )
