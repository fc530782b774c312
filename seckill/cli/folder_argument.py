"""Folders named on the command line."""

from pathlib import Path

from seckill.errors import StartError


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"{folder} cannot be used ({error.strerror}): choose another folder with --out.") from error
