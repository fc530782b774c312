"""The fields of `Settings` are the one table from which reading, checks, `doctor` and the docs follow."""

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from seckill.errors import SettingsError
from seckill.settings import kinds
from seckill.settings.secrets import Secret as Secret  # part of what this module offers
from seckill.settings.secrets import redact_url

PREFIX = "SECKILL_"

Role = Literal["api", "worker", "keeper"]


def _about(kind: kinds.Kind, sentence: str, unit: str = "") -> dict[str, Any]:
    return {"kind": kind, "sentence": sentence, "unit": unit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is not set is None, or an empty URL."""

    redis_url: str = field(
        default="",
        metadata=_about(
            kinds.url("redis", "rediss", "unix", "memory"),
            "Where Valkey or Redis is, also `redis+cluster://…` or `redis+sentinel://…/name`; when empty, `seckill up` "
            "starts one of its own; `memory://` keeps nothing.",
        ),
    )
    database_url: str = field(
        default="",
        metadata=_about(
            kinds.url("sqlite", "postgresql", "postgres", "mysql", "mariadb"),
            "Where the ledger is; when empty, `seckill up` keeps it in SQLite in the data folder.",
        ),
    )
    broker_url: str = field(
        default="",
        metadata=_about(
            kinds.url("amqp", "amqps"),
            "RabbitMQ, to carry orders from the streams to the workers; when empty, workers read the streams.",
        ),
    )
    alarm_url: str = field(
        default="",
        metadata=_about(
            kinds.url("http", "https"),
            "Where alarms are sent to, as a POST with JSON; when empty, they are only logged.",
        ),
    )
    data_dir: Path = field(
        default=Path(".seckill"),
        metadata=_about(Path, "Folder in which `seckill up` keeps its servers' data and its secrets."),
    )
    host: str = field(default="127.0.0.1", metadata=_about(str, "Address that the API listens on."))
    port: int = field(
        default=8000,
        metadata=_about(kinds.whole(0, 65_535), "Port that the API listens on; 0 takes any free one."),
    )
    jwt_secret: Secret | None = field(
        default=None,
        metadata=_about(kinds.hmac_secret, "Secret that signs buyers' tokens (HS256).", "≥ 32 bytes"),
    )
    jwt_public_key: str | None = field(
        default=None,
        metadata=_about(
            kinds.public_key,
            "Instead of the secret: the public key (RSA, P-256 or Ed25519) of whoever signs buyers' tokens.",
            "PEM or path",
        ),
    )
    jwt_issuer: str | None = field(
        default=None, metadata=_about(str, "When set, the `iss` that buyers' tokens must have.")
    )
    jwt_audience: str | None = field(
        default=None, metadata=_about(str, "When set, the `aud` that buyers' tokens must have.")
    )
    admin_key: Secret | None = field(
        default=None,
        metadata=_about(kinds.admin_key, "Operators send it as their bearer token.", "≥ 16 characters"),
    )
    payment_provider: str = field(
        default="sandbox",
        metadata=_about(
            kinds.provider,
            "Who takes the money: `sandbox` (nobody), `callback` (your own payment side tells us) or a factory of "
            "yours such as `shop.payment:make`.",
        ),
    )
    payment_secret: Secret | None = field(
        default=None,
        metadata=_about(kinds.hmac_secret, "Secret that signs payment callbacks and refund requests.", "≥ 32 bytes"),
    )
    refund_url: str = field(
        default="",
        metadata=_about(
            kinds.url("http", "https"),
            "Where `callback` asks for refunds, as a signed POST; when empty, they wait to be made by hand.",
        ),
    )
    shop_name: str = field(default="seckill", metadata=_about(str, "The name at the top of the buyers' pages."))
    sign_in_url: str = field(
        default="",
        metadata=_about(
            kinds.url("http", "https"),
            "Where the buyers' pages send people who are not signed in.",
        ),
    )
    pay_url: str = field(
        default="",
        metadata=_about(
            kinds.url("http", "https"),
            "Where the buyers' pages send people to pay, with `order_id` in the query.",
        ),
    )
    demo_sign_in: Literal["on", "off"] = field(
        default="off",
        metadata=_about(
            kinds.one_of("on", "off"),
            "`on`: anybody may sign in under any name, as with `seckill up --demo`; never in production.",
        ),
    )
    rehearsal: Literal["off", "on"] = field(
        default="off",
        metadata=_about(
            kinds.one_of("off", "on"),
            "`on`: this is a test, so the roles start with the sandbox, demo sign-in or failpoints as well, and every "
            "page says so.",
        ),
    )
    lanes: int = field(
        default=16,
        metadata=_about(
            kinds.whole(1, 256),
            "How many lanes there are. A round gets one of them, or as many as its sale asks for.",
        ),
    )
    pay_within_s: int = field(
        default=900,
        metadata=_about(kinds.whole(1, 2_592_000), "Time to pay for an order when the sale does not say.", "seconds"),
    )
    cool_down_s: int = field(
        default=5,
        metadata=_about(
            kinds.whole(0, 3_600),
            "How long a buyer who cancelled an order, or did not pay for it in time, waits before buying again, when "
            "the sale does not say; twice as long with each such order of a round, up to an hour; 0: not at all.",
            "seconds",
        ),
    )
    lapse_alarm_share: float = field(
        default=0.5,
        metadata=_about(
            kinds.decimal(0, 1),
            "Share of a round's orders, cancelled or not paid in time, at which there is an alarm; 0: never.",
        ),
    )
    lapse_alarm_orders: int = field(
        default=20,
        metadata=_about(
            kinds.whole(1, 1_000_000_000), "Orders that a round must have before that share counts.", "orders"
        ),
    )
    retry_delays_s: tuple[float, ...] = field(
        default=(5.0, 10.0, 30.0),
        metadata=_about(
            kinds.delays, "Waits before a failed order is tried again; then it is a dead letter.", "seconds"
        ),
    )
    claim_idle_s: float = field(
        default=5.0,
        metadata=_about(kinds.decimal(0.1, 3600), "Silence after which a worker's entries go to another.", "seconds"),
    )
    backlog_max: int = field(
        default=100_000,
        metadata=_about(
            kinds.whole(1, 100_000_000),
            "Orders waiting in a lane at which more claims are refused as `overloaded`.",
            "orders",
        ),
    )
    durability: Literal["strict", "fast"] = field(
        default="strict",
        metadata=_about(
            kinds.one_of("strict", "fast"),
            "`strict`: an order is on disk before its answer; `fast`: within a second after it.",
        ),
    )
    replica_acks: int | None = field(
        default=None,
        metadata=_about(
            kinds.whole(0, 9),
            "Replicas that must have an order before its answer; when empty: 1 with `strict` on a cluster or behind "
            "Sentinel, otherwise 0.",
            "replicas",
        ),
    )
    gate_timeout_s: float = field(
        default=1.0,
        metadata=_about(
            kinds.decimal(0.01, 60), "Wait for the gate after which a claim's result is `unknown`.", "seconds"
        ),
    )
    claims_per_second: int = field(
        default=100,
        metadata=_about(
            kinds.whole(0, 1_000_000),
            "Claims of one buyer in a second, on each API process, above which they are refused with 429; 0: no limit.",
            "claims",
        ),
    )
    connections_max: int = field(
        default=50_000,
        metadata=_about(
            kinds.whole(1, 10_000_000),
            "Connections to one API process above which more are refused with 503; fewer, where it may not open so "
            "many files.",
            "connections",
        ),
    )
    connections_per_address: int | None = field(
        default=None,
        metadata=_about(
            kinds.whole(1, 10_000_000),
            "Connections of one address (IPv4, or a /64 of IPv6) to one API process above which more are refused with "
            "429; when empty, a fourth of all.",
            "connections",
        ),
    )
    trusted_proxies: tuple[kinds.Network, ...] = field(
        default=(),
        metadata=_about(
            kinds.networks,
            "Your own proxies, as addresses or networks such as `10.0.0.0/8`: they may have any number of "
            "connections, and the client's address is taken from the `X-Forwarded-For` that they write.",
        ),
    )
    metrics: Literal["public", "operator"] = field(
        default="operator",
        metadata=_about(
            kinds.one_of("public", "operator"),
            "Who may read `/metrics` on the API's port: those with the admin key, or everybody, who then learns "
            "exactly how much is sold.",
        ),
    )
    metrics_port: int | None = field(
        default=None,
        metadata=_about(
            kinds.whole(1, 65_535),
            "Port on which a role, or `seckill up` for all of them, serves `/metrics` without a key; when empty, none.",
        ),
    )
    metrics_host: str = field(
        default="127.0.0.1",
        metadata=_about(str, "Address of that port; one that strangers cannot reach."),
    )
    audit_every_s: float = field(
        default=1.0,
        metadata=_about(
            kinds.decimal(0, 86_400), "How often the keeper checks that everything adds up; 0: never.", "seconds"
        ),
    )
    audit_pauses: Literal["off", "on"] = field(
        default="off",
        metadata=_about(
            kinds.one_of("off", "on"),
            "`on`: the keeper pauses a sale when its audit finds units or orders that do not add up, and resumes it if "
            "that turns out to be false.",
        ),
    )
    log_format: Literal["auto", "json", "console"] = field(
        default="auto",
        metadata=_about(
            kinds.one_of("auto", "json", "console"),
            "`json`, `console` for people, or `auto`: for people when there is a terminal.",
        ),
    )
    log_level: Literal["debug", "info", "warning", "error"] = field(
        default="info",
        metadata=_about(
            kinds.one_of("debug", "info", "warning", "error"),
            "The least important events that are logged: `debug`, `info`, `warning` or `error`.",
        ),
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Settings":
        """As the commands read them. Raises SettingsError with a sentence for everything that is wrong."""
        return read(environ)

    @property
    def in_memory(self) -> bool:
        """Gate and streams live in one process, and nothing of them is kept."""
        return self.redis_url.startswith("memory:")

    @property
    def replicas_to_wait_for(self) -> int:
        if self.replica_acks is not None:
            return self.replica_acks
        # There a replica takes over automatically, and whatever it does not have is lost.
        taken_over = self.redis_url.partition(":")[0].endswith(("+cluster", "+sentinel"))
        return int(taken_over and self.durability == "strict")

    def __repr__(self) -> str:
        # URLs carry passwords, so the generated one would tell them.
        return f"Settings({', '.join(f'{setting.name}={shown(setting, self)!r}' for setting in TABLE)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table."""

    name: str
    default: str  # as it would be written in the environment; empty: not set
    kind: kinds.Kind
    sentence: str
    unit: str

    @property
    def secret(self) -> bool:
        return self.kind in kinds.SECRET

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def written(value: object) -> str:
    """A setting's value as it would stand in the environment."""
    match value:
        case Secret():
            return value.reveal()
        case None:
            return ""
        case tuple():
            return ",".join(map(written, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


TABLE: tuple[Setting, ...] = tuple(
    Setting(name=item.name, default=written(item.default), **item.metadata) for item in fields(Settings)
)
_BY_VARIABLE = {setting.variable: setting for setting in TABLE}

# Read where it is used: it makes processes die in tests and sets nothing.
_NOT_SETTINGS = frozenset({"SECKILL_FAILPOINTS"})
# What Kubernetes puts into every container near a Service called seckill or seckill-something.
_SERVICE_LINK = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_\w+)?$")


def read(environ: Mapping[str, str]) -> Settings:
    """Raises SettingsError with a sentence for everything that is wrong, not only for the first."""
    problems: list[str] = []
    values: dict[str, Any] = {}
    for setting in TABLE:
        text = environ.get(setting.variable, "")
        # An empty variable counts as not set, as in compose files.
        if text.strip():
            try:
                values[setting.name] = setting.kind(text if setting.secret else text.strip())
            except ValueError as error:
                problems.append(f"{setting.variable} {error}.")
    problems += [_unknown(name) for name, value in sorted(environ.items()) if _is_unknown(name, value)]
    if "jwt_secret" in values and "jwt_public_key" in values:
        problems.append("Set SECKILL_JWT_SECRET or SECKILL_JWT_PUBLIC_KEY, not both.")
    if "jwt_secret" in values and values["jwt_secret"] == values.get("admin_key"):
        problems.append("Set SECKILL_ADMIN_KEY to something else than SECKILL_JWT_SECRET.")
    if "payment_secret" in values and values["payment_secret"] in (values.get("jwt_secret"), values.get("admin_key")):
        problems.append("Set SECKILL_PAYMENT_SECRET to something else than the other secrets.")
    if values.get("broker_url") and str(values.get("redis_url", "")).startswith("memory:"):
        problems.append("Leave SECKILL_BROKER_URL empty with memory://, which has no streams to relay from.")
    if problems:
        raise SettingsError(problems)
    return Settings(**values)


def _is_unknown(name: str, value: str) -> bool:
    if not name.startswith(PREFIX) or name in _BY_VARIABLE or name in _NOT_SETTINGS:
        return False
    return not _SERVICE_LINK.search(name) and not value.startswith(("tcp://", "udp://"))


def _unknown(name: str) -> str:
    # Without the prefix, which all have in common and which would make everything look similar.
    names = [setting.variable.removeprefix(PREFIX) for setting in TABLE]
    close = difflib.get_close_matches(name.removeprefix(PREFIX), names, n=1)
    return f"{name} is not a setting: " + (f"did you mean {PREFIX}{close[0]}?" if close else "remove it.")


def require_production(settings: Settings, role: Role) -> None:
    """What `seckill up` makes for itself has to be set when a role runs on its own."""
    if settings.in_memory:
        remedy = f"point SECKILL_REDIS_URL at a Valkey or Redis, which `seckill {role}` can share with the other roles"
        raise SettingsError([f"memory:// is the memory of one process, for `seckill up` only: {remedy}."])
    problems = [
        f"Set {PREFIX}{name.upper()}: `seckill {role}` starts no servers of its own."
        for name in ("redis_url", "database_url")
        if not getattr(settings, name)
    ]
    if role == "api" and settings.admin_key is None:
        problems.append("Set SECKILL_ADMIN_KEY: operators are known by it.")
    if role == "api" and settings.jwt_secret is None and settings.jwt_public_key is None:
        problems.append("Set SECKILL_JWT_SECRET or SECKILL_JWT_PUBLIC_KEY: buyers' tokens are checked with it.")
    if role != "worker" and settings.payment_provider == "callback" and settings.payment_secret is None:
        problems.append("Set SECKILL_PAYMENT_SECRET: callbacks and refund requests are signed with it.")
    if problems:
        raise SettingsError(problems)


def shown(setting: Setting, settings: Settings) -> str:
    """A setting's value as people may see it."""
    value = getattr(settings, setting.name)
    return "***" if setting.secret and value is not None else redact_url(written(value))
