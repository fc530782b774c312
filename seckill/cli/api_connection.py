"""Calls the API for operators' commands."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from seckill.cli.command_settings import environment, with_own_secrets
from seckill.client import Client, Denied, NoAnswer
from seckill.client.repeats import ANSWER_WITHIN_S, REPEAT_FOR_S
from seckill.client.requests import Request
from seckill.errors import SeckillError, StartError
from seckill.settings import Settings

# For requests whose result must be known: longer than the API itself waits for a database.
ACTED_WITHIN_S = 30.0
ADDRESS_FILE = "address"  # where `seckill up` notes the address it serves, in its data folder


def call(
    request: Request[Any], *, url: str | None = None, within_s: float = ANSWER_WITHIN_S, why: str | None = None
) -> Any:
    """Returns the answer as the API has written it. Nothing is repeated: the operator who typed the command sees the
    result. `why` is for the record."""
    if why is not None:
        request = replace(request, reason=why)
    with connected(url, for_anybody=request.for_anybody, repeat_for_s=0, within_s=within_s) as client:
        return client.document(request)


@contextmanager
def connected(
    url: str | None,
    *,
    for_anybody: bool = False,
    repeat_for_s: float = REPEAT_FOR_S,
    within_s: float = ANSWER_WITHIN_S,
) -> Iterator[Client]:
    """Yields a client with the admin key, which may be missing for what anyone may ask. Errors are told in the
    operator's terms."""
    settings = with_own_secrets(environment())
    if settings.admin_key is None and not for_anybody:
        raise StartError("There is no admin key: set SECKILL_ADMIN_KEY, or run `seckill up` in this folder.")
    key = None if settings.admin_key is None else settings.admin_key.reveal()
    base = address(settings, url).rstrip("/")
    with Client(base, key, repeat_for_s=repeat_for_s, within_s=within_s) as client:
        try:
            yield client
        except Denied as error:
            if error.code in ("unauthenticated", "forbidden"):
                raise SeckillError("The admin key is not the one of this server: set SECKILL_ADMIN_KEY.") from error
            raise  # the key is known, and the answer says what is wrong with it
        except NoAnswer as error:
            raise StartError(f"The API at {base} does not answer ({error.reason}): start it, or give --url.") from error


def address(settings: Settings, url: str | None) -> str:
    """Returns the given address; otherwise that of the environment, or the one that a `seckill up` in this folder has
    noted."""
    if url:
        return url
    noted = settings.data_dir / ADDRESS_FILE
    if not (os.environ.get("SECKILL_HOST") or os.environ.get("SECKILL_PORT")) and noted.is_file():
        return noted.read_text().strip()
    return f"http://{shown_host(settings.host)}:{settings.port}"


def shown_host(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 (shown, not bound)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
