"""The API as the operator's commands call it."""

import json
import urllib.error
import urllib.request
from typing import Any

from seckill.cli.running import environment, with_data_folder
from seckill.errors import SeckillError, StartError

TIMEOUT_S = 10
ADDRESS_FILE = "address"  # where `seckill up` notes the address it serves, in its data folder


def call(method: str, path: str, body: dict[str, Any] | None = None, *, url: str | None = None) -> Any:
    settings = with_data_folder(environment())
    if settings.admin_key is None:
        raise StartError("There is no admin key: set SECKILL_ADMIN_KEY, or run `seckill up` in this folder.")
    address = settings.data_dir / ADDRESS_FILE
    noted = address.read_text().strip() if url is None and address.is_file() else None
    base = url or noted or f"http://{settings.host}:{settings.port}"
    request = urllib.request.Request(  # noqa: S310 (checked below)
        base.rstrip("/") + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {settings.admin_key.reveal()}", "Content-Type": "application/json"},
        method=method,
    )
    if request.type not in ("http", "https"):
        raise StartError(f"{base} is not an address of the API: use http://… or https://….")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise SeckillError(_detail(error)) from error
    except (OSError, ValueError) as error:
        raise StartError(f"The API at {base} does not answer ({error}): start it, or give --url.") from error


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError):
        return f"The API answered {error.code} {error.reason}."
