"""Restores a backup into an empty data folder, completely or not at all."""

import shutil
from pathlib import Path

from seckill.errors import StartError
from seckill.local.backup import (
    GATE,
    GATE_HOME,
    BackupManifest,
    check_backup,
    read_chunks,
    sync_folder,
    write_file,
)
from seckill.local.data_folder import UNFINISHED, DataFolder

LOCK = "lock"  # may be left from a start that has left nothing else


def restore(source: Path, target: Path) -> BackupManifest:
    """Raises StartError for an incomplete backup, and for a folder that is in use or not empty."""
    manifest = check_backup(source)
    _must_be_empty(target)
    with DataFolder.open(target) as folder:
        _must_be_empty(target)  # checked now that no other process can begin in it
        try:
            _copy(source, folder.path, manifest)
        except BaseException as error:
            _clear(folder.path, manifest)
            if isinstance(error, OSError):
                raise StartError(f"{target} cannot be written ({error.strerror}): mend that, and try again.") from error
            raise
    return manifest


def _copy(source: Path, target: Path, manifest: BackupManifest) -> None:
    # As long as this file exists, nothing starts in this folder, even if no process is left to remove it.
    write_file(target / UNFINISHED, [])
    sync_folder(target)
    for folder in (target / GATE_HOME, target / GATE):
        folder.mkdir(mode=0o700)
    for name, expected in manifest.files.items():
        if write_file(target / name, read_chunks(source / name)) != expected:
            raise StartError(f"{source / name} has changed while it was read: take another backup.")
    for folder in (target / GATE, target / GATE_HOME, target):
        sync_folder(folder)
    (target / UNFINISHED).unlink()
    sync_folder(target)


def _must_be_empty(target: Path) -> None:
    try:
        found = sorted(path.name for path in target.iterdir() if path.name != LOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(f"{target} cannot be used ({error.strerror}): choose another folder with --data.") from error
    if found:
        raise StartError(f"{target} is not empty (it has {found[0]}): restore into a new folder, with --data.")


def _clear(target: Path, manifest: BackupManifest) -> None:
    for name in manifest.files:
        (target / name).unlink(missing_ok=True)
    shutil.rmtree(target / GATE_HOME, ignore_errors=True)
    (target / UNFINISHED).unlink(missing_ok=True)
