"""Copies a data folder while it is in use."""

import sys
from pathlib import Path

from seckill.cli.async_command import run
from seckill.cli.command_settings import environment
from seckill.errors import StartError
from seckill.local.backup import back_up
from seckill.loops import Stop
from seckill.settings import Settings


def backup(folder: Path, /, *, data: Path | None = None) -> None:
    """Copy the data folder of `seckill up` while it runs: ledger, gate and secrets as they are at one moment.

    All of it or nothing. Whoever has the copy can sign as you and read every order: keep it as safe as the original.

    Parameters
    ----------
    folder
        Where to: a folder that is empty, or not there yet.
    data
        The data folder, if not the usual one.
    """
    settings = environment(data=data)
    _must_be_embedded(settings)
    source, target = settings.data_dir.absolute(), folder.absolute()

    async def main(_: Stop) -> None:
        manifest, held_s = await back_up(source, target)
        mib = sum(file.size for file in manifest.files.values()) / (1 << 20)
        sys.stdout.write(
            f"Backed up to {folder}: {manifest.orders} orders and what was queued, {mib:.1f} MiB. "
            f"The ledger was held for {held_s * 1000:.0f} ms.\n"
        )

    run(main, settings)


def _must_be_embedded(settings: Settings) -> None:
    own = {
        "SECKILL_REDIS_URL": settings.redis_url,
        "SECKILL_DATABASE_URL": settings.database_url,
        "SECKILL_BROKER_URL": settings.broker_url,
    }
    if named := [name for name, url in own.items() if url]:
        raise StartError(
            f"{' and '.join(named)} is set, and this copies the embedded servers only: back up your own as "
            "docs/deploy.md says, or leave it out."
        )
