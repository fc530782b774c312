"""Refusals and errors as `application/problem+json`, each with a stable `code`."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from seckill.domain.outcome import Outcome
from seckill.web.incidents import Incident

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1

# Outcome → HTTP status and what it means, in a sentence for humans.
REFUSALS: Mapping[Outcome, tuple[int, str]] = {
    Outcome.UNAUTHENTICATED: (401, "Sign in first."),
    Outcome.UNKNOWN_SALE: (404, "There is no such sale."),
    Outcome.INVALID: (422, "The request is not valid."),
    Outcome.RATE_LIMITED: (429, "Too many requests, please slow down."),
    Outcome.NOT_READY: (503, "The sale is not ready to answer. Nothing was bought; please try again."),
    Outcome.KEY_REUSED: (422, "This Idempotency-Key was used for another request; use a new one."),
    Outcome.COOLING_DOWN: (429, "You have let an order of this sale lapse; please wait before you buy again."),
    Outcome.LIMIT_REACHED: (409, "You have reached the limit per buyer for this sale."),
    Outcome.NOT_STARTED: (409, "The sale has not started yet."),
    Outcome.ENDED: (410, "The sale is over."),
    Outcome.PAUSED: (409, "The sale is paused; please try again later."),
    Outcome.OVERLOADED: (503, "Too many orders are waiting. Nothing was bought; please try again."),
    Outcome.SOLD_OUT: (409, "Sold out."),
    Outcome.UNKNOWN: (503, "The result is unclear. Repeat with the same Idempotency-Key to learn it."),
}

_TITLES = {
    400: "Bad request",
    401: "Unauthenticated",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    422: "Not valid",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}


_INCIDENTS = {401: Incident.UNAUTHENTICATED, 403: Incident.FORBIDDEN, 429: Incident.RATE_LIMITED}


class HttpProblem(Exception):
    """Raised by a handler, answered as problem+json."""

    incident: Incident | None = None  # what it is a sign of, where the status does not tell

    def __init__(self, status: int, code: str, detail: str, retry_after_s: int = RETRY_AFTER_S, **extra: Any) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
        self.status = status
        self.code = code
        self.detail = detail
        self.extra = extra

    @classmethod
    def of(cls, outcome: Outcome, detail: str = "", **extra: Any) -> "HttpProblem":
        status, sentence = REFUSALS[outcome]
        return cls(status, outcome.value, detail or sentence, **extra)

    def body(self) -> bytes:
        return msgspec.json.encode(
            {
                "type": "about:blank",
                "title": _TITLES[self.status],
                "status": self.status,
                "code": self.code,
                "detail": self.detail,
                **self.extra,
            }
        )

    def headers(self) -> dict[str, str]:
        if self.status == 401 and self.code == Outcome.UNAUTHENTICATED:
            return {"WWW-Authenticate": 'Bearer realm="seckill"'}
        if self.status in (429, 503):
            return {"Retry-After": str(self.retry_after_s)}
        return {}

    def response(self) -> Response:
        return Response(self.body(), self.status, self.headers(), MEDIA_TYPE)


def suspicious(problem: HttpProblem, incident: Incident) -> HttpProblem:
    problem.incident = incident
    return problem


def incident_in(problem: HttpProblem) -> Incident | None:
    return problem.incident or _INCIDENTS.get(problem.status)


def not_found() -> HttpProblem:
    """One answer for what does not exist and for what belongs to another buyer."""
    return HttpProblem(404, "not_found", "There is nothing here.")


def invalid(field: str, message: str) -> HttpProblem:
    return HttpProblem.of(Outcome.INVALID, f"{field}: {message}", errors=[{"field": field, "message": message}])
