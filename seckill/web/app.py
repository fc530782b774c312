"""The ASGI application: the claim route first, then the framework with everything else."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
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

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.outcome import Outcome
from seckill.engine.rounds.operator import NotInForce
from seckill.errors import GateError, LedgerError
from seckill.loops import Stop, repeat
from seckill.operations.presence import present
from seckill.operations.repair import Repair
from seckill.settings import Settings
from seckill.telemetry import BACKLOG, ROUNDS_MISSING, Exposition
from seckill.web.auth import AdminKey, Buyers
from seckill.web.buyer_rate import Rates
from seckill.web.claim import ClaimRoute
from seckill.web.claim_protocol import TurnBuffer
from seckill.web.client_address import ClientAddresses, Headers
from seckill.web.context import Context, context
from seckill.web.demo_sign_in import signs_anybody_in
from seckill.web.envelope import Envelope
from seckill.web.guess_backoff import GuessBackoff
from seckill.web.incidents import Incidents
from seckill.web.mounting import prefix_in
from seckill.web.open_streams import NoSeat, Seats
from seckill.web.openapi import document
from seckill.web.order_ids import OrderIds
from seckill.web.pages import PREFIXES_MAX, Pages, nowhere
from seckill.web.problems import HttpProblem, incident_in, not_found
from seckill.web.routes import DEMO_ROUTES, ROUTES, Handler, Route
from seckill.web.sales import view as sale_view
from seckill.web.websocket import live

log = structlog.get_logger()

STATIC = str(files("seckill.web") / "static")
SALES_EVERY_S = 0.5
# Returned units are announced. This is the net under it, for announcements that are lost.
PULSES_EVERY_S = 0.4
LOOK_UP_EVERY_S = 1.0
SERVERS_EVERY_S = 0.5
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
        order_ids = OrderIds(engine.order_ids)
        use = UseCases(engine, settings, before_answers=order_ids.prepare)
        self.context = Context(
            settings=settings,
            provider=engine.provider,
            sale_ids=engine.sale_ids,
            order_ids=engine.order_ids,
            auditor=engine.auditor,
            sale_cache=use.sale_cache,
            desk=use.admission,
            operator_desk=use.operator_desk,
            failures=use.failures,
            orders=use.orders,
            actions=use.buyer_actions,
            search=use.order_search,
            rounds=use.round_records,
            live=use.live_figures,
            readiness=use.readiness,
            repair=Repair(use),
            payments=use.payments,
            refunds=use.refunds,
            buyers=Buyers(settings),
            admin_key=AdminKey(settings.admin_key),
            seats=Seats(),
            addresses=ClientAddresses(settings.trusted_proxies),
            incidents=Incidents(),
            guesses=GuessBackoff(time.monotonic),
            exposition=Exposition(),
        )
        ctx = self.context
        rates = Rates(settings.claims_per_second)
        self.claims = ClaimRoute(ctx.buyers, ctx.sale_cache, ctx.desk, ctx.orders, order_ids, rates, self._note_claim)
        self.outbox = TurnBuffer()
        self._engine = engine
        self._rest = _framework(ctx)
        self._enveloped = Envelope(self._answer)

    def _note_claim(self, error: Exception, peer: str, headers: Headers) -> None:
        incident = incident_in(error) if isinstance(error, HttpProblem) else None
        if incident is not None:
            self.context.incidents.note(incident, self.context.addresses.of(peer, headers))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._enveloped(scope, receive, send)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        sale_id = ClaimRoute.sale_in(scope)
        if sale_id is not None:
            await self.claims(sale_id, scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        ctx, engine = self.context, self._engine
        stop = Stop()

        async def pulses() -> None:
            ctx.desk.forget(await ctx.sale_cache.refresh_pulses())

        async def figures() -> None:
            BACKLOG.set(await engine.transport.backlog(ctx.sale_cache.lanes()))
            ROUNDS_MISSING.set(len(ctx.sale_cache.without_pulse()))

        async def listen() -> None:
            await ctx.orders.listen(engine.transport)

        async def hear_of_units() -> None:
            await ctx.desk.sold_out.listen(engine.transport)

        loops = [
            asyncio.create_task(loop)
            for loop in (
                repeat("sales", ctx.sale_cache.refresh_sales, stop, SALES_EVERY_S),
                repeat("pulses", pulses, stop, PULSES_EVERY_S),
                repeat("servers", engine.gate.watch_servers, stop, SERVERS_EVERY_S),
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
            async with present(engine.board, "api", posted):
                yield
        finally:
            stop.set()
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)


def _framework(ctx: Context) -> Starlette:
    described = ROUTES + (DEMO_ROUTES if signs_anybody_in(ctx.settings) else ())

    async def show_openapi(request: Request) -> Response:
        openapi = _openapi(described, prefix_in(request.scope))
        return Response(openapi, media_type="application/json", headers={"Cache-Control": "public, max-age=60"})

    async def docs(_: Request) -> Response:
        return FileResponse(f"{STATIC}/docs.html", headers=SECURITY_HEADERS)

    routes: list[BaseRoute] = [*_by_path(described), *Pages(ctx.settings, sandbox=ctx.provider.sandbox).routes()]
    routes += [
        WebSocketRoute("/v1/ws", live),
        StarletteRoute("/openapi.json", show_openapi),
        StarletteRoute("/docs", docs),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            HttpProblem: _problem,
            HTTPException: _http_exception,
            GateError: _unavailable,
            LedgerError: _unavailable,
            NotInForce: _not_in_force,
            NoSeat: _no_seat,
            Exception: _internal,
        },
    )
    # Such a redirect names a host, taken from a header, and forgets whether it was https.
    app.router.redirect_slashes = False
    app.state.context = ctx
    return app


@lru_cache(maxsize=PREFIXES_MAX)
def _openapi(routes: tuple[Route, ...], prefix: str) -> bytes:
    """Once, also where one process makes several nodes."""
    return msgspec.json.encode(document(routes, prefix))


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
    response = HttpProblem(503, "not_in_force", str(error), sale=sale_view(ctx, error.sale)).response()
    del response.headers["Retry-After"]  # to repeat it would do it twice
    return response


async def _no_seat(request: Request, _: Exception) -> Response:
    detail = "You are waiting for too much at once; close some of your pages."
    return await _problem(request, HttpProblem.of(Outcome.RATE_LIMITED, detail))


async def _internal(request: Request, error: Exception) -> Response:
    log.error("a request failed", method=request.method, path=request.url.path, exc_info=error)
    return HttpProblem(500, "internal", "Something went wrong on our side; it was logged.").response()
