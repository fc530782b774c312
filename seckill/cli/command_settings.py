"""The settings that a command runs with."""

import os
from dataclasses import replace
from pathlib import Path

from seckill.errors import SettingsError, StartError
from seckill.local.data_folder import Secrets, read_secrets
from seckill.settings import TABLE, Secret, Settings, read

_PORT = next(setting.kind for setting in TABLE if setting.name == "port")


def environment(data: Path | None = None, host: str | None = None, port: int | None = None) -> Settings:
    """Returns the settings of the environment, overridden by the command line."""
    settings = read(os.environ)
    if port is not None:
        try:
            _PORT(str(port))
        except ValueError as error:
            raise SettingsError([f"--port {error}."]) from error
    return replace(
        settings,
        data_dir=data or settings.data_dir,
        host=host or settings.host,
        port=settings.port if port is None else port,
    )


def with_data_folder(settings: Settings) -> Settings:
    """Takes what is not set from the folder of `seckill up`, if there is one."""
    return with_own_secrets(with_embedded(settings)) if settings.data_dir.is_dir() else settings


def with_own_secrets(settings: Settings) -> Settings:
    """Takes the secrets that `seckill up` made, where none are set."""
    found = read_secrets(settings.data_dir)
    return settings if found is None else with_secrets(settings, found)


def with_embedded(settings: Settings) -> Settings:
    from seckill.local.valkey import EmbeddedValkey  # noqa: PLC0415 (slow to load, and most commands do without)

    if settings.in_memory:
        return settings
    folder = settings.data_dir.resolve()
    if set("?%#") & set(str(folder)):
        raise StartError(f"The data folder {folder} has a ?, % or # in its name: choose another with --data.")
    valkey = EmbeddedValkey(folder, durability=settings.durability)
    return replace(
        settings,
        redis_url=settings.redis_url or valkey.url,
        database_url=settings.database_url or f"sqlite:///{folder / 'ledger.db'}",
    )


def with_secrets(settings: Settings, made: Secrets) -> Settings:
    """Takes each of these secrets if none is set."""
    if not settings.knows_buyers:
        settings = replace(settings, jwt_secret=Secret(made.jwt_secret))
    return replace(
        settings,
        admin_key=settings.admin_key or Secret(made.admin_key),
        payment_secret=settings.payment_secret or Secret(made.payment_secret),
    )
