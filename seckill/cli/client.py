"""The API as the operator's commands call it."""

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any

from seckill.cli.configuring import environment, with_own_secrets
from seckill.errors import SeckillError, StartError
from seckill.settings import Settings

TIMEOUT_S = 10
# Past any proxy of the environment: the admin key is none of its business, and it may not know our host.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ADDRESS_FILE = "address"  # where `seckill up` notes the address it serves, in its data folder


def call(
    method: str, path: str, body: dict[str, Any] | None = None, *, url: str | None = None, public: bool = False
) -> Any:
    settings = with_own_secrets(environment())
    headers = {"Content-Type": "application/json"}
    if not public:
        if settings.admin_key is None:
            raise StartError("There is no admin key: set SECKILL_ADMIN_KEY, or run `seckill up` in this folder.")
        headers["Authorization"] = f"Bearer {settings.admin_key.reveal()}"
    base = (url or _address(settings)).rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise StartError(f"{base} is not an address of the API: use http://… or https://….")
    try:
        request = urllib.request.Request(  # noqa: S310 (checked above)
            base + path, None if body is None else json.dumps(body).encode(), headers, method=method
        )
        with DIRECT.open(request, timeout=TIMEOUT_S) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise SeckillError(_detail(error)) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise StartError(f"The API at {base} does not answer ({_reason(error)}): start it, or give --url.") from error


def _address(settings: Settings) -> str:
    """What the environment says goes before what a `seckill up` in this folder has noted."""
    noted = settings.data_dir / ADDRESS_FILE
    if not (os.environ.get("SECKILL_HOST") or os.environ.get("SECKILL_PORT")) and noted.is_file():
        return noted.read_text().strip()
    return f"http://{shown_host(settings.host)}:{settings.port}"


def shown_host(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 (shown, not bound)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def _detail(error: urllib.error.HTTPError) -> str:
    if error.code in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        return "The admin key is not the one of this server: set SECKILL_ADMIN_KEY."
    try:
        return str(json.load(error)["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"The API answered {error.code} {error.reason}."
