"""The tables, brought to this version."""

import sys

from seckill.backends.sql.migration import migrate as migrate_ledger
from seckill.cli.async_command import run
from seckill.cli.command_settings import environment, with_data_folder
from seckill.errors import SettingsError
from seckill.loops import Stop


def migrate() -> None:
    """Bring the database's schema to this version. Harmless to repeat."""
    settings = with_data_folder(environment())
    if not settings.database_url:
        raise SettingsError(["Set SECKILL_DATABASE_URL."])

    async def main(_: Stop) -> None:
        await migrate_ledger(settings.database_url)

    run(main, settings)
    sys.stdout.write("The database is up to date.\n")
