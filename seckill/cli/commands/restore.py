"""Makes a data folder from a backup."""

import sys
from pathlib import Path

from seckill.cli.command_settings import environment
from seckill.local.restore import restore as restore_backup


def restore(folder: Path, /, *, data: Path | None = None) -> None:
    """Restore a copy made by `seckill backup` into an empty data folder. Checks every file first.

    Stop the original before you start the copy: two that run sell the same units twice.

    Parameters
    ----------
    folder
        The backup.
    data
        The data folder to make, if not the usual one. It must be empty, or not be there yet.
    """
    settings = environment(data=data)
    manifest = restore_backup(folder.absolute(), settings.data_dir.absolute())
    sys.stdout.write(
        f"Restored {manifest.orders} orders and what was queued at {manifest.made_at} into {settings.data_dir}. "
        "Start it with `seckill up`, then run `seckill audit`.\n"
    )
