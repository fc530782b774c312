"""Asks an issuer of tokens for what it publishes, bounded in time and size."""

import urllib.request
from collections.abc import Mapping

from seckill import http_call

WITHIN_S = 5.0
BYTES_MAX = 64 * 1024
# The errors that `ask`, and reading its answer, may raise, including timeouts and refusals.
FAILURES = (*http_call.FAILURES, RecursionError)


def ask(url: str, form: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    """Sends a GET, or with a form a POST. Blocks. Raises one of FAILURES."""
    request = urllib.request.Request(url, form, dict(headers or {}))  # noqa: S310 (http or https by the settings)
    with http_call.open_url(request, WITHIN_S) as answer:
        found: bytes = answer.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise ValueError(f"the answer has more than {BYTES_MAX} bytes")
    return found
