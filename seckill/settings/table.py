"""The fields of `Settings` are the one table from which reading, checks, `doctor` and the docs follow."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from seckill.errors import SettingsError
from seckill.settings import kinds
from seckill.settings.conflicts import conflicts
from seckill.settings.door import DoorSettings
from seckill.settings.keys import KeySettings
from seckill.settings.pages import PageSettings
from seckill.settings.payment import PaymentSettings
from seckill.settings.redaction import Secret as Secret  # part of what this module offers
from seckill.settings.redaction import redact_url
from seckill.settings.servers import ServerSettings
from seckill.settings.setting import PREFIX, Setting, about, kept, written
from seckill.settings.sign_in import SignInSettings
from seckill.settings.unknown_names import unknown_names


@dataclass(frozen=True, kw_only=True)
class Settings(DoorSettings, PageSettings, PaymentSettings, SignInSettings, KeySettings, ServerSettings):
    """What is not set is None, or an empty URL. Fields are in the order of the bases from the last to the first."""

    lanes: int = field(
        default=16,
        metadata=about(
            kinds.whole(1, 256),
            "How many lanes there are. A round gets one of them, or as many as its sale asks for.",
        ),
    )
    pay_within_s: int = field(
        default=900,
        metadata=about(kinds.whole(1, 2_592_000), "Time to pay for an order when the sale does not say.", "seconds"),
    )
    cool_down_s: int = field(
        default=5,
        metadata=about(
            kinds.whole(0, 3_600),
            "How long a buyer who cancelled an order, or did not pay for it in time, waits before buying again, when "
            "the sale does not say; twice as long with each such order of a round, up to an hour; 0: not at all.",
            "seconds",
        ),
    )
    lapse_alarm_share: float = field(
        default=0.5,
        metadata=about(
            kinds.decimal(0, 1),
            "Share of a round's orders, cancelled or not paid in time, at which there is an alarm; 0: never.",
        ),
    )
    lapse_alarm_orders: int = field(
        default=20,
        metadata=about(
            kinds.whole(1, 1_000_000_000), "Orders that a round must have before that share counts.", "orders"
        ),
    )
    confirm_within_s: float = field(
        default=5.0,
        metadata=about(
            kinds.decimal(0.1, 30),
            "How long a claim waits to be written at most, in a sale whose `confirm` is `ledger`; then it is answered "
            "`unknown`, to be repeated with the same key.",
            "seconds",
        ),
    )
    retry_delays_s: tuple[float, ...] = field(
        default=(5.0, 10.0, 30.0),
        metadata=about(
            kinds.delays, "Waits before a failed order is tried again; then it is a dead letter.", "seconds"
        ),
    )
    claim_idle_s: float = field(
        default=5.0,
        metadata=about(kinds.decimal(0.1, 3600), "Silence after which a worker's entries go to another.", "seconds"),
    )
    backlog_max: int = field(
        default=100_000,
        metadata=about(
            kinds.whole(1, 100_000_000),
            "Orders waiting in a lane at which more claims are refused as `overloaded`.",
            "orders",
        ),
    )
    pace_after_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0, 3600),
            "In a sale with more units than a lane may have waiting: once this much of the ledger's work waits, claims "
            "are let in no faster than orders are written; 0: they never wait for that.",
            "seconds",
        ),
    )
    durability: Literal["strict", "fast"] = field(
        default="strict",
        metadata=about(
            kinds.one_of("strict", "fast"),
            "`strict`: an order is on disk before its answer; `fast`: within a second after it.",
        ),
    )
    replica_acks: int | None = field(
        default=None,
        metadata=about(
            kinds.whole(0, 9),
            "Replicas that must have an order before its answer; when empty: 1 with `strict` on a cluster or behind "
            "Sentinel, otherwise 0.",
            "replicas",
        ),
    )
    gate_timeout_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0.01, 60), "Wait for the gate after which a claim's result is `unknown`.", "seconds"
        ),
    )
    claims_per_second: int = field(
        default=100,
        metadata=about(
            kinds.whole(0, 1_000_000),
            "Claims of one buyer in a second, on each API process, above which they are refused with 429; 0: no limit.",
            "claims",
        ),
    )
    metrics: Literal["public", "operator"] = field(
        default="operator",
        metadata=about(
            kinds.one_of("public", "operator"),
            "Who may read `/metrics` on the API's port: those with the admin key, or everybody, who then learns "
            "exactly how much is sold.",
        ),
    )
    metrics_port: int | None = field(
        default=None,
        metadata=about(
            kinds.whole(1, 65_535),
            "Port on which a role serves `/metrics`, `/healthz` and `/readyz` without a key, or `seckill up` the "
            "figures of all roles; when empty, none.",
        ),
    )
    metrics_host: str = field(
        default="127.0.0.1",
        metadata=about(str, "Address of that port; one that strangers cannot reach."),
    )
    traces_per_second: int = field(
        default=20,
        metadata=about(
            kinds.whole(1, 10_000),
            "Claims that each API process traces in a second at most, of those that it chooses itself and of those "
            "whose callers ask for it; see OTEL_EXPORTER_OTLP_ENDPOINT.",
            "claims",
        ),
    )
    audit_every_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0, 86_400), "How often the keeper checks that everything adds up; 0: never.", "seconds"
        ),
    )
    audit_pauses: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: the keeper pauses a sale when its audit finds units or orders that do not add up, and resumes it if "
            "that turns out to be false.",
        ),
    )
    events_kept_days: int = kept(
        30, "How long events can be read from the feed; who reads on after an older one is told to begin anew."
    )
    letters_kept_days: int = kept(
        90, "How long letters are kept about which all is decided: written after all, or discarded."
    )
    lines_kept_days: int = kept(
        365, "How long lines and draws of rounds that are over are kept, with all entries; never shorter than events."
    )
    figures_kept_days: int = kept(
        90, "How long the charts of a sale can be looked back at, and alarms; to the second only where much happened."
    )
    webhook_private: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: webhooks may go to loopback and private addresses, and to any port from 1024 on. `seckill up` has "
            "it on unless it is set to `off`.",
        ),
    )
    log_format: Literal["auto", "json", "console"] = field(
        default="auto",
        metadata=about(
            kinds.one_of("auto", "json", "console"),
            "`json`, `console` for people, or `auto`: for people when there is a terminal.",
        ),
    )
    log_level: Literal["debug", "info", "warning", "error"] = field(
        default="info",
        metadata=about(
            kinds.one_of("debug", "info", "warning", "error"),
            "The least important events that are logged: `debug`, `info`, `warning` or `error`.",
        ),
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Settings":
        """As the commands read them. Raises SettingsError with a sentence for everything that is wrong."""
        return read(environ)

    @property
    def knows_buyers(self) -> bool:
        """There is something to check buyers' tokens with."""
        return bool(self.jwt_secret or self.jwt_secrets or self.jwt_public_key or self.jwks_url)

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


TABLE: tuple[Setting, ...] = tuple(
    Setting(name=item.name, default=written(item.default), **item.metadata) for item in fields(Settings)
)


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
    problems += unknown_names(environ, [setting.variable for setting in TABLE], PREFIX)
    problems += conflicts(values)
    if problems:
        raise SettingsError(problems)
    return Settings(**values)


def shown(setting: Setting, settings: Settings) -> str:
    """A setting's value as people may see it."""
    value = getattr(settings, setting.name)
    return "***" if setting.secret and value not in (None, ()) else redact_url(written(value))
