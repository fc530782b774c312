"""Everything that is held about one buyer."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from seckill.cli.api_connection import call
from seckill.cli.output import print_json
from seckill.cli.parameters import Url
from seckill.client import requests
from seckill.errors import StartError

Out = Annotated[Path | None, Parameter(help="Write it to this file, for its owner alone, instead of the terminal.")]


def export(buyer: str, /, *, out: Out = None, url: Url = None) -> None:
    """Export everything that is held about one buyer, as JSON.

    Parameters
    ----------
    buyer
        The `sub` of their tokens.
    """
    found = call(requests.export_buyer(buyer), url=url)
    if out is None:
        print_json(found)
        return
    try:
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    except OSError as error:
        raise StartError(f"{out} cannot be written ({error.strerror}): choose another file with --out.") from error
