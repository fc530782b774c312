"""What can go wrong between a client and the API.

ClientError
├── CheckNeeded      a captcha has to be solved by a person before there is a pass
├── WebhookNotGenuine  a webhook that is not signed as it should be, or too old; see `verify_webhook`
├── NoAnswer         the connection failed, or nothing came in time: what was asked for may have been done
└── Refused          the API said no; `code` is its stable reason, such as `sold_out`
    ├── Invalid      400, 413, 422: the request itself is wrong
    ├── Denied       401, 403: not with this token
    ├── NotFound     404: it does not exist, or is another buyer's
    ├── Conflict     409, 410: not in the state that the sale or the order is in
    │   └── EventsGone   the events after that cursor are no longer kept; `oldest` is where to go on
    ├── TooMany      429: slow down; `retry_after_s` says by how much
    └── Unavailable  502, 503, 504: not now
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from seckill.errors import SeckillError


class ClientError(SeckillError):
    # The key of the claim or operator's request that ended with this error. Repeated with the same key, it is never
    # done twice.
    key: str | None = None


class CheckNeeded(ClientError):
    def __init__(self, site_key: str, ticket: str) -> None:
        self.site_key = site_key
        self.ticket = ticket
        super().__init__("A captcha has to be solved first: show its widget, and give its response with the ticket.")


class NoAnswer(ClientError):
    def __init__(self, url: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The API at {url} does not answer ({reason}).")


class Refused(ClientError):
    def __init__(self, status: int, problem: Mapping[str, Any], retry_after_s: float | None = None) -> None:
        self.status = status
        self.problem = problem  # all that the API said, such as `order_ids` with `limit_reached`
        self.code = str(problem.get("code") or f"http_{status}")
        self.retry_after_s = retry_after_s
        super().__init__(str(problem.get("detail") or f"The API answered {status} {_phrase(status)}."))


class Invalid(Refused):
    pass


class Denied(Refused):
    pass


class NotFound(Refused):
    pass


class Conflict(Refused):
    pass


class EventsGone(Conflict):
    """Read the present state (`all_orders`), then follow on after `oldest`."""

    @property
    def oldest(self) -> int:
        """The cursor after which everything is kept."""
        return int(self.problem["oldest"])


class TooMany(Refused):
    pass


class Unavailable(Refused):
    pass


_KINDS: Mapping[int, type[Refused]] = {
    400: Invalid,
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: Conflict,
    413: Invalid,
    422: Invalid,
    429: TooMany,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> Refused:
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = {}  # from a proxy, whose answers have another form
    wait = headers.get("retry-after", "")
    retry_after_s = float(wait) if wait.isascii() and wait.isdigit() else None
    kind = EventsGone if problem.get("code") == "cursor_gone" else _KINDS.get(status, Refused)
    return kind(status, problem, retry_after_s)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
