"""Asks an issuer of tokens for what it publishes, bounded in time and size."""

import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

WITHIN_S = 5.0
BYTES_MAX = 64 * 1024
# The errors that `ask`, and reading its answer, may raise, including timeouts and refusals.
FAILURES = (OSError, ValueError, HTTPException, RecursionError)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: with one, another server could choose whom we believe."""

    def redirect_request(self, *args: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def ask(url: str, form: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    """A GET, or with a form a POST. Blocks; raises one of FAILURES."""
    request = urllib.request.Request(url, form, dict(headers or {}))  # noqa: S310 (http or https by the settings)
    with _opener.open(request, timeout=WITHIN_S) as answer:
        found: bytes = answer.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise ValueError(f"the answer has more than {BYTES_MAX} bytes")
    return found
