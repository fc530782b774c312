"""Refusals and errors as `application/problem+json`, each with a stable `code`."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from seckill.domain.outcome import REFUSALS, Outcome, RefusalKind
from seckill.web.incidents import Incident

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
# A longer name is not repeated in the answer.
NAMED_LENGTH_MAX = 64

_STATUSES = {
    RefusalKind.NO_IDENTITY: 401,
    RefusalKind.NO_SUCH_THING: 404,
    RefusalKind.NOT_ALLOWED: 403,
    RefusalKind.NOT_VALID: 422,
    RefusalKind.TOO_SOON: 429,
    RefusalKind.CONFLICT: 409,
    RefusalKind.GONE: 410,
    RefusalKind.TROUBLE: 503,
}
# Outcome → HTTP status and what it means, in a sentence for humans.
ANSWERS: Mapping[Outcome, tuple[int, str]] = {
    outcome: (_STATUSES[refusal.kind], refusal.sentence) for outcome, refusal in REFUSALS.items()
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

    incident: Incident | None = None  # the incident that it is a sign of, if the status does not show that

    def __init__(self, status: int, code: str, detail: str, retry_after_s: int = RETRY_AFTER_S, **extra: Any) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
        self.status = status
        self.code = code
        self.detail = detail
        self.extra = extra

    @classmethod
    def of(cls, outcome: Outcome, detail: str = "", **extra: Any) -> "HttpProblem":
        status, sentence = ANSWERS[outcome]
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


def address_limited(wait_s: int) -> HttpProblem:
    return HttpProblem.of(
        Outcome.RATE_LIMITED, "Too many requests come from your address, please slow down.", retry_after_s=wait_s
    )


def suspicious(problem: HttpProblem, incident: Incident) -> HttpProblem:
    problem.incident = incident
    return problem


def incident_in(problem: HttpProblem) -> Incident | None:
    return problem.incident or _INCIDENTS.get(problem.status)


def not_found() -> HttpProblem:
    """The problem for an unknown address."""
    return HttpProblem(404, "not_found", "There is nothing here.")


def not_yours(what: str) -> HttpProblem:
    """The answer is exactly the same for something that does not exist and for something that belongs to another
    buyer."""
    return HttpProblem(404, "not_found", f"There is no such {what}, or it is somebody else's.")


def no_such(what: str, named: str) -> HttpProblem:
    """For operators, who may know what exists."""
    is_plain = named.isprintable() and len(named) <= NAMED_LENGTH_MAX
    return HttpProblem(404, "not_found", f"There is no {what} {named}." if is_plain else f"There is no such {what}.")


def invalid(field: str, message: str) -> HttpProblem:
    return HttpProblem.of(Outcome.INVALID, f"{field}: {message}", errors=[{"field": field, "message": message}])


def bad_lines(faults: Sequence[tuple[int, str]]) -> HttpProblem:
    """For an upload that was refused as a whole."""
    errors = [{"field": f"line {line}", "message": why} for line, why in faults]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    line, why = faults[0]
    return HttpProblem.of(Outcome.INVALID, f"Line {line} {why}{more}. Nothing of this upload was taken.", errors=errors)
