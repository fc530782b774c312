"""Answers when a handler raises: each kind of error has its status, code and words."""

from collections.abc import Awaitable, Callable, Mapping

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.outcome import Outcome
from seckill.engine.rounds.operator_changes import NotInForce
from seckill.errors import GateError, LedgerError
from seckill.web.connections.waiting_seats import NoSeat
from seckill.web.context import context
from seckill.web.mounting import prefix_in
from seckill.web.pages.pages import nowhere
from seckill.web.problems import HttpProblem, not_found
from seckill.web.sales.sales import view as sale_view

log = structlog.get_logger()


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpProblem)
    context(request).note(error, request)
    return error.response()


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        problem = HttpProblem(405, "method_not_allowed", "This address does not answer that method.")
        response = problem.response()
        response.headers.update(error.headers or {})
        return response
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/"):
        return nowhere(prefix_in(request.scope))
    return not_found().response()


async def _unavailable(_: Request, error: Exception) -> Response:
    log.warning("a request could not be answered", reason=str(error))
    return HttpProblem(503, "not_ready", "A part of the system does not answer now; please try again.").response()


async def _not_in_force(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotInForce)
    ctx = context(request)
    ctx.sale_cache.put(error.sale)
    response = HttpProblem(
        503, "not_in_force", str(error), sale=sale_view(ctx, error.sale, to_operator=True)
    ).response()
    del response.headers["Retry-After"]  # a repetition would do it twice
    return response


async def _no_seat(request: Request, _: Exception) -> Response:
    detail = "You, or all at your address together, are waiting for too much at once; close some of your pages."
    return await _problem(request, HttpProblem.of(Outcome.RATE_LIMITED, detail))


def _without_code(request: Request) -> str:
    """Returns the path without a voucher's code, which is as good as money."""
    return "/v1/admin/vouchers/…" if "code" in request.path_params else request.url.path


async def _internal(request: Request, error: Exception) -> Response:
    log.error("a request failed", method=request.method, path=_without_code(request), exc_info=error)
    return HttpProblem(500, "internal", "Something went wrong on our side; it was logged.").response()


ERROR_ANSWERS: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    HttpProblem: _problem,
    HTTPException: _http_exception,
    GateError: _unavailable,
    LedgerError: _unavailable,
    NotInForce: _not_in_force,
    NoSeat: _no_seat,
    Exception: _internal,
}
