"""The ASGI application: the claim route first, then the framework with everything else."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, WebSocketRoute
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from seckill.admission import AdmissionDesk
from seckill.alarms import Alarm
from seckill.buyer_orders import BuyerOrders
from seckill.catalogue import Catalogue
from seckill.errors import GateError, LedgerError
from seckill.failures import Failures
from seckill.loops import Stop, repeat
from seckill.operator_desk import NotInForce, OperatorDesk
from seckill.payments import Payments
from seckill.presence import present
from seckill.settings import Settings
from seckill.telemetry import BACKLOG, ROUNDS_MISSING
from seckill.web.auth import AdminKey, Buyers
from seckill.web.claim import ClaimRoute
from seckill.web.claiming import Outbox
from seckill.web.context import Context, context
from seckill.web.demo import signs_anybody_in
from seckill.web.openapi import document
from seckill.web.pages import Pages, nowhere
from seckill.web.problems import Problem, not_found
from seckill.web.rates import Rates
from seckill.web.routes import DEMO_ROUTES, ROUTES, Handler, Route
from seckill.web.sales import view as sale_view
from seckill.web.seats import Seats
from seckill.web.sockets import live
from seckill.wiring import Engine

log = structlog.get_logger()

STATIC = str(files("seckill.web") / "static")
SALES_EVERY_S = 0.5
# Returned units are announced. This is the net under it, for announcements that are lost.
PULSES_EVERY_S = 0.4
LOOK_UP_EVERY_S = 1.0
FIGURES_EVERY_S = 1.0
# Nothing from other hosts, no inline script. The docs page sets style attributes, hence 'unsafe-inline' for styles.
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Api:
    """One API process: the handlers, and the loops that keep its knowledge fresh."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        catalogue = Catalogue(engine.ledger, engine.gate, engine.sale_ids)
        self.context = Context(
            settings=settings,
            engine=engine,
            catalogue=catalogue,
            desk=AdmissionDesk(engine.gate, catalogue),
            operator_desk=OperatorDesk(engine.ledger, engine.gate),
            failures=Failures(engine.ledger, Alarm(settings.alarm_url), settings.retry_delays_s),
            orders=BuyerOrders(engine.ledger, engine.gate, catalogue),
            payments=Payments(engine.ledger.payments, engine.gate, engine.provider, engine.order_ids),
            buyers=Buyers(settings),
            admin_key=AdminKey(settings.admin_key),
            seats=Seats(),
        )
        ctx = self.context
        self.claims = ClaimRoute(
            ctx.buyers, catalogue, ctx.desk, ctx.orders, engine.order_ids, Rates(settings.claims_per_second)
        )
        self.outbox = Outbox()
        self._rest = _framework(ctx)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        sale_id = ClaimRoute.sale_in(scope)
        if sale_id is not None:
            await self.claims(sale_id, scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        ctx = self.context
        stop = Stop()

        async def pulses() -> None:
            ctx.desk.forget(await ctx.catalogue.refresh_pulses())

        async def figures() -> None:
            BACKLOG.set(await ctx.engine.transport.backlog(ctx.catalogue.lanes()))
            ROUNDS_MISSING.set(len(ctx.catalogue.without_pulse()))

        async def listen() -> None:
            await ctx.orders.listen(ctx.engine.transport)

        async def hear_of_units() -> None:
            await ctx.desk.listen(ctx.engine.transport)

        loops = [
            asyncio.create_task(loop)
            for loop in (
                repeat("sales", ctx.catalogue.refresh_sales, stop, SALES_EVERY_S),
                repeat("pulses", pulses, stop, PULSES_EVERY_S),
                repeat("states", listen, stop),
                repeat("versions", hear_of_units, stop),
                repeat("figures", figures, stop, FIGURES_EVERY_S),
                repeat("waiting", ctx.orders.look_up_waiting, stop, LOOK_UP_EVERY_S),
            )
        ]

        def posted() -> dict[str, object]:
            figures = ctx.desk.figures
            return {"claims": figures.claims, "refused": figures.refused(), "answers": figures.answers()}

        try:
            async with present(ctx.engine.board, "api", posted):
                yield
        finally:
            stop.set()
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)


def _framework(ctx: Context) -> Starlette:
    described = ROUTES + (DEMO_ROUTES if signs_anybody_in(ctx.settings) else ())
    openapi = _openapi(described)

    async def show_openapi(_: Request) -> Response:
        return Response(openapi, media_type="application/json", headers={"Cache-Control": "public, max-age=60"})

    async def docs(_: Request) -> Response:
        return FileResponse(f"{STATIC}/docs.html", headers=SECURITY_HEADERS)

    routes: list[BaseRoute] = [*_by_path(described), *Pages(ctx.settings, sandbox=ctx.engine.provider.sandbox).routes()]
    routes += [
        WebSocketRoute("/v1/ws", live),
        StarletteRoute("/openapi.json", show_openapi),
        StarletteRoute("/docs", docs),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            Problem: _problem,
            HTTPException: _http_exception,
            GateError: _unavailable,
            LedgerError: _unavailable,
            NotInForce: _not_in_force,
            Exception: _internal,
        },
    )
    app.state.context = ctx
    return app


@cache
def _openapi(routes: tuple[Route, ...]) -> bytes:
    """Once, also where one process makes several nodes."""
    return msgspec.json.encode(document(routes))


def _by_path(routes: Sequence[Route]) -> list[BaseRoute]:
    """One route for each path, so that a wrong method learns all the right ones."""
    handlers: dict[str, dict[str, Handler]] = {}
    for route in routes:
        handlers.setdefault(route.path, {})[route.method] = route.handler or _nothing
    return [StarletteRoute(path, _dispatch(found), methods=list(found)) for path, found in handlers.items()]


def _dispatch(handlers: Mapping[str, Handler]) -> Handler:
    async def endpoint(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return endpoint


async def _nothing(_: Request) -> Response:
    """In the place of the claim route, which answers before the framework is asked."""
    raise not_found()


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        problem = Problem(405, "method_not_allowed", "This address does not answer that method.")
        response = problem.response()
        response.headers.update(error.headers or {})
        return response
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/"):
        return nowhere()
    return not_found().response()


async def _unavailable(_: Request, error: Exception) -> Response:
    log.warning("a request could not be answered", reason=str(error))
    return Problem(503, "not_ready", "A part of the system does not answer now; please try again.").response()


async def _not_in_force(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotInForce)
    ctx = context(request)
    ctx.catalogue.put(error.sale)
    response = Problem(503, "not_in_force", str(error), sale=sale_view(ctx, error.sale)).response()
    del response.headers["Retry-After"]  # to repeat it would do it twice
    return response


async def _internal(request: Request, error: Exception) -> Response:
    log.error("a request failed", method=request.method, path=request.url.path, exc_info=error)
    return Problem(500, "internal", "Something went wrong on our side; it was logged.").response()
