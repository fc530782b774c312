"""Runs before every route of operators: checks the key and the role, and notes whose name goes on the record.

It goes by the table of routes: a handler can neither forget the check nor ask for another role than the table says.
"""

from typing import cast
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.operator import Operator, Role
from seckill.ports.record import Actor, acting_as
from seckill.web.context import context
from seckill.web.problems import HttpProblem, invalid
from seckill.web.requests.request_ids import current_request_id
from seckill.web.route import Handler, Route

REASON = "seckill-reason"
REASON_MAX = 255
_OPERATOR = "seckill.operator"


def guarded(route: Route, handler: Handler) -> Handler:
    role = route.role
    assert role is not None, "the table of routes has seen to it"

    async def guard(request: Request) -> Response:
        ctx = context(request)
        if route.open_to_all is not None and route.open_to_all(ctx.settings):
            return await handler(request)
        operator = await ctx.operators.of(request)
        _require(operator, role)
        request.scope[_OPERATOR] = operator
        with acting_as(Actor(operator.name, current_request_id(), _reason(request))):
            return await handler(request)

    return guard


def operator_in(request: Request) -> Operator:
    """Returns the operator who makes the request."""
    return cast(Operator, request.scope[_OPERATOR])


def require_role(request: Request, role: Role) -> None:
    """For a parameter that needs a higher role than its route."""
    _require(operator_in(request), role)


def _require(operator: Operator, needed: Role) -> None:
    if not operator.role.may_act_as(needed):
        detail = f"This needs the role {needed}; the key of {operator.name} has the role {operator.role}."
        raise HttpProblem(403, "role_too_small", detail, role=operator.role, needs=needed)


def _reason(request: Request) -> str | None:
    """Reads the reason of a change whose body has no field for it. It is escaped like an address, because a header
    cannot hold Chinese otherwise."""
    given = request.headers.get(REASON)
    if given is None:
        return None
    try:
        reason = unquote(given, errors="strict") if given.isascii() else ""
    except UnicodeDecodeError:
        reason = ""
    if not reason.strip() or not reason.isprintable() or len(reason) > REASON_MAX:
        raise invalid("Seckill-Reason", f"must be one line of 1 to {REASON_MAX} characters, percent-encoded UTF-8")
    return reason.strip()
