"""Calls of other people's servers, such as a shop's, a payment provider's or an alarm's receiver. They follow no
redirect: a redirected POST becomes a GET, whose answer says nothing about what was sent, and another server would be
asked than the one that was configured."""

import urllib.request
from http.client import HTTPException
from typing import Any

# What `open_url`, and reading its answer, may raise. That includes timeouts, refusals and redirects.
FAILURES = (OSError, ValueError, HTTPException)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def open_url(request: urllib.request.Request, within_s: float) -> Any:
    """Returns the answer, to be closed by the caller. Blocks. Raises HTTPError unless its status is 2xx."""
    return _opener.open(request, timeout=within_s)
