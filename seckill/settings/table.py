"""The fields of `Settings` are the one table from which reading, checks, `doctor` and the docs follow. Each is in the
module of its part."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from seckill.errors import SettingsError
from seckill.settings.audit import AuditSettings
from seckill.settings.conflicts import conflicts
from seckill.settings.door import DoorSettings
from seckill.settings.gate import GateSettings
from seckill.settings.keys import KeySettings
from seckill.settings.logs import LogSettings
from seckill.settings.metrics_and_traces import MetricsSettings
from seckill.settings.orders import OrderSettings
from seckill.settings.pages import PageSettings
from seckill.settings.payment import PaymentSettings
from seckill.settings.redaction import Secret as Secret  # part of what this module offers
from seckill.settings.redaction import redact_url
from seckill.settings.retention import RetentionSettings
from seckill.settings.servers import ServerSettings
from seckill.settings.setting import PREFIX, Setting, written
from seckill.settings.sign_in import SignInSettings
from seckill.settings.unknown_names import unknown_names
from seckill.settings.webhooks import WebhookSettings


@dataclass(frozen=True, kw_only=True)
class Settings(
    LogSettings,
    WebhookSettings,
    RetentionSettings,
    AuditSettings,
    MetricsSettings,
    GateSettings,
    OrderSettings,
    DoorSettings,
    PageSettings,
    PaymentSettings,
    SignInSettings,
    KeySettings,
    ServerSettings,
):
    """A setting that is not set is None, or an empty URL. Fields are in the order of the bases, from the last to the
    first."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Settings":
        """Reads the settings as the commands do. Raises SettingsError with a sentence for everything that is wrong."""
        return read(environ)

    @property
    def knows_buyers(self) -> bool:
        """Whether there is a key with which buyers' tokens can be checked."""
        return bool(self.jwt_secret or self.jwt_secrets or self.jwt_public_key or self.jwks_url)

    @property
    def in_memory(self) -> bool:
        """Whether gate and streams are in the memory of one process and nothing of them is stored."""
        return self.redis_url.startswith("memory:")

    @property
    def replicas_to_wait_for(self) -> int:
        if self.replica_acks is not None:
            return self.replica_acks
        # With these, a replica takes over automatically, and everything that it does not have is lost.
        taken_over = self.redis_url.partition(":")[0].endswith(("+cluster", "+sentinel"))
        return int(taken_over and self.durability == "strict")

    def __repr__(self) -> str:
        # URLs contain passwords, which the generated repr would reveal.
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
