"""Brings the tables to this version, and the gate once it may be."""

import sys
from typing import Annotated

from cyclopts import Parameter

from seckill.backends.redis.board import RedisBoard
from seckill.backends.redis.queue_entry_forms import RedisEntryForms
from seckill.backends.sql import open_ledger
from seckill.backends.sql.migration import migrate as migrate_ledger
from seckill.cli.async_command import run
from seckill.cli.command_settings import environment, with_data_folder
from seckill.errors import SettingsError
from seckill.loops import Stop
from seckill.operations.upgrade_finish import finish_upgrade, prepare_downgrade
from seckill.settings import Settings

Finish = Annotated[
    bool,
    Parameter(
        help="All processes are of this version now: the gate may write what older ones cannot read.", negative=()
    ),
]
Back = Annotated[
    bool, Parameter(help="The version before is coming back: the gate writes only what it can read.", negative=())
]


def migrate(*, finish: Finish = False, back: Back = False) -> None:
    """Bring the database's schema to this version. Harmless to repeat."""
    settings = with_data_folder(environment())
    if not settings.database_url:
        raise SettingsError(["Set SECKILL_DATABASE_URL."])
    if finish and back:
        raise SettingsError(["Say --finish or --back, not both."])
    if (finish or back) and (settings.in_memory or not settings.redis_url):
        raise SettingsError(["Set SECKILL_REDIS_URL: --finish and --back are about the gate."])

    async def main(_: Stop) -> None:
        if finish or back:
            await _tell_gate(settings, finish=finish)
        else:
            await migrate_ledger(settings.database_url)

    run(main, settings)
    if finish:
        sys.stdout.write(
            "The upgrade is finished. Versions before this one are refused until `seckill migrate --back`.\n"
        )
    elif back:
        sys.stdout.write("The version before may start. Stop the roles of this version one by one.\n")
    else:
        sys.stdout.write("The database is up to date.\n")


async def _tell_gate(settings: Settings, *, finish: bool) -> None:
    ledger = open_ledger(settings.database_url)
    forms = RedisEntryForms(settings.redis_url, replica_acks=settings.replicas_to_wait_for)
    board = RedisBoard(settings.redis_url)
    try:
        if finish:
            await finish_upgrade(ledger, forms, board, range(settings.lanes), broker=bool(settings.broker_url))
        else:
            await prepare_downgrade(ledger, forms, range(settings.lanes))
    finally:
        await board.close()
        await forms.close()
        await ledger.close()
