"""The ASGI application: the claim route first, then the framework with everything else."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
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
from seckill.domain.receipt import Receipts
from seckill.engine.access.access_book import LOOK_EVERY_S
from seckill.engine.door.address_rate import AddressRate
from seckill.engine.rounds.operator_changes import NotInForce
from seckill.engine.traces.sampling import Sampling
from seckill.errors import GateError, LedgerError
from seckill.loops import Stop, repeat
from seckill.operations.presence import present
from seckill.operations.repair import Repair
from seckill.settings import Settings
from seckill.settings.otel import Tracing
from seckill.telemetry import BACKLOG, ROUNDS_MISSING, WAITING_CLIENTS, Exposition
from seckill.web.admin_key import AdminKey
from seckill.web.buyer_rate import Rates
from seckill.web.buyer_tokens import Buyers
from seckill.web.claim import ClaimRoute
from seckill.web.claim_protocol import TurnBuffer
from seckill.web.claim_wait import ClaimWait
from seckill.web.client_address import ClientAddresses, Headers
from seckill.web.console_session import ConsoleSessions
from seckill.web.console_sign_in import ConsoleSignIn
from seckill.web.content_security_policy import DOCS_HEADERS
from seckill.web.context import Context, context
from seckill.web.cross_origin import CrossOrigin
from seckill.web.demo_sign_in import signs_anybody_in
from seckill.web.claim_door import ClaimDoor
from seckill.web.answer_headers import Envelope
from seckill.web.guess_backoff import GuessBackoff
from seckill.web.help_pages import help_routes
from seckill.web.incidents import Incidents
from seckill.web.item_ids import ItemIds
from seckill.web.line_join import JoinRoute
from seckill.web.key_set import KeySet
from seckill.web.line_parts import LineParts
from seckill.web.looking_back_parts import LookingBackParts
from seckill.web.mounting import prefix_in
from seckill.web.openapi import document
from seckill.web.order_ids import OrderIds
from seckill.web.orders import view as order_view
from seckill.web.pages import EMBED_LOADS, EMBED_PATHS, PREFIXES_MAX, Pages, nowhere
from seckill.web.parameters import only
from seckill.web.problems import HttpProblem, incident_in, not_found
from seckill.web.role_check import guarded
from seckill.web.routes import DEMO_ROUTES, ROUTES, Handler, Route
from seckill.web.sale_list import SaleLists
from seckill.web.sales import view as sale_view
from seckill.web.token_groups import TokenGroups
from seckill.web.token_keys import TokenKeys
from seckill.web.traced_claims import TracedClaims
from seckill.web.waiting_seats import NoSeat, Seats
from seckill.web.websocket import live

log = structlog.get_logger()

STATIC = str(files("seckill.web") / "static")
SALES_EVERY_S = 0.5
# Returned units are announced. This is the net under it, for announcements that are lost.
PULSES_EVERY_S = 0.4
PACE_EVERY_S = 0.25
LOOK_UP_EVERY_S = 1.0
SERVERS_EVERY_S = 0.5
FIGURES_EVERY_S = 1.0
# A query for each round that is sold out.
UNPAID_EVERY_S = 3.0


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
            entry_ids=engine.entry_ids,
            item_ids=ItemIds(engine.item_ids),
            auditor=engine.auditor,
            sale_cache=use.sale_cache,
            sale_lists=SaleLists(),
            desk=use.admission,
            operator_desk=use.operator_desk,
            failures=use.failures,
            orders=use.orders,
            actions=use.buyer_actions,
            operator_actions=use.operator_actions,
            search=use.order_search,
            rounds=use.round_records,
            events=use.event_feed,
            vouchers=use.vouchers,
            pictures=use.pictures,
            live=use.live_figures,
            readiness=use.readiness,
            repair=Repair(use),
            payments=use.payments,
            checkouts=use.checkouts,
            refunds=use.refunds,
            webhooks=use.webhooks,
            webhook_tests=use.webhook_tests,
            buyers=_buyers(use),
            admin_key=AdminKey(settings.admin_key, settings.admin_key_old),
            access_book=use.access_book,
            access=use.access_desk,
            record=use.record_desk,
            seats=Seats(settings.streams_per_address),
            addresses=ClientAddresses(settings.trusted_proxies),
            incidents=Incidents(),
            guesses=GuessBackoff(time.monotonic),
            sign_in_rate=AddressRate(settings.sign_ins_per_address),
            pass_rate=AddressRate(settings.passes_per_address),
            passes=use.passes,
            door=_door(use),
            lists=use.audience_lists,
            audience_desk=use.audience_desk,
            buyer_data=use.buyer_data,
            line=_line_parts(use),
            back=_looking_back(use),
            exposition=Exposition(),
            sessions=ConsoleSessions(settings.public_url, use.access_book) if settings.oidc_url else None,
        )
        ctx = self.context
        self.claims = _claim_route(ctx, use, order_ids, self._note_claim)
        self.joins = JoinRoute(ctx)
        # None: nothing is traced, and nothing looks whether it should be.
        self.traced = _traced(self.claims, ctx, engine)
        self._claim = self.traced or self.claims
        self.outbox = TurnBuffer()
        self._unpaid_units = use.unpaid_units
        self._engine = engine
        self._rest = _framework(ctx, engine.door_key)
        # None: no page of another origin may call us, and nothing is done about it.
        self.origins = CrossOrigin(settings.origins, ROUTES, (*EMBED_PATHS, *EMBED_LOADS)) if settings.origins else None
        self._enveloped = Envelope(self.origins.around(self._answer) if self.origins else self._answer)

    def _note_claim(self, error: Exception, peer: str, headers: Headers) -> None:
        incident = incident_in(error) if isinstance(error, HttpProblem) else None
        if incident is not None:
            self.context.note_incident(incident, peer, headers)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._enveloped(scope, receive, send)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        sale_id = ClaimRoute.sale_in(scope)
        if sale_id is not None:
            await self._claim(sale_id, scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        ctx, engine = self.context, self._engine
        stop = Stop()
        with suppress(LedgerError):  # otherwise the loop sees to it, and until then nobody can be told who may buy
            await ctx.access_book.refresh()

        async def pulses() -> None:
            ctx.desk.forget(await ctx.sale_cache.refresh_pulses())

        async def figures() -> None:
            BACKLOG.set(await engine.transport.backlog(ctx.sale_cache.lanes()))
            ROUNDS_MISSING.set(len(ctx.sale_cache.without_pulse()))
            WAITING_CLIENTS.set(ctx.seats.taken)

        async def listen() -> None:
            await ctx.orders.listen(engine.transport)

        async def hear_of_units() -> None:
            await ctx.desk.sold_out.listen(engine.transport)

        loops = [
            asyncio.create_task(loop)
            for loop in (
                repeat("sales", ctx.sale_cache.refresh_sales, stop, SALES_EVERY_S),
                repeat("pulses", pulses, stop, PULSES_EVERY_S),
                repeat("pace", ctx.desk.keep_pace, stop, PACE_EVERY_S),
                repeat("unpaid units", self._unpaid_units.count, stop, UNPAID_EVERY_S),
                repeat("lists", ctx.lists.refresh, stop, SALES_EVERY_S),
                repeat("access", ctx.access_book.refresh, stop, LOOK_EVERY_S),
                repeat("servers", engine.gate.watch_servers, stop, SERVERS_EVERY_S),
                repeat("states", listen, stop, lasting=True),
                repeat("versions", hear_of_units, stop, lasting=True),
                repeat("figures", figures, stop, FIGURES_EVERY_S),
                repeat("waiting", ctx.orders.look_up_waiting, stop, LOOK_UP_EVERY_S),
                *([repeat("keys", ctx.buyers.keys.follow, stop, lasting=True)] if ctx.settings.jwks_url else []),
                repeat("entries", ctx.line.watches.look, stop, LOOK_UP_EVERY_S),
            )
        ]

        def posted() -> dict[str, object]:
            figures = ctx.desk.figures
            figures.tell()
            return {"claims": figures.claims, "refused": figures.refused(), "answers": figures.answers()}

        try:
            async with present(engine.board, "api", posted):
                yield
        finally:
            stop.set()
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            ctx.desk.figures.tell()


def _buyers(use: UseCases) -> Buyers:
    keys = TokenKeys(use.settings, KeySet.of(use.settings.jwks_url))
    return Buyers(use.settings, keys, use.access_book.barred)


def _door(use: UseCases) -> ClaimDoor:
    groups = TokenGroups(use.settings.jwt_groups_claim)
    return ClaimDoor(use.invitations, groups, use.passes.seal, use.sale_cache, use.access_book.barred)


def _claim_route(
    ctx: Context, use: UseCases, order_ids: OrderIds, note: Callable[[Exception, str, Headers], None]
) -> ClaimRoute:
    settings = ctx.settings
    return ClaimRoute(
        ctx.buyers,
        ctx.sale_cache,
        ctx.desk,
        ctx.orders,
        ClaimWait(ctx.orders, ctx.seats, settings.confirm_within_s),
        partial(order_view, ctx),
        order_ids,
        ctx.item_ids,
        Rates(settings.claims_per_second),
        ctx.door,
        ctx.addresses,
        AddressRate(settings.claims_per_address),
        use.unpaid_units.known,
        note,
    )


def _traced(claims: ClaimRoute, ctx: Context, engine: Engine) -> TracedClaims | None:
    if engine.tracer is None:
        return None
    tracing = Tracing.from_environment()
    sampling = Sampling(tracing.ratio, ctx.settings.traces_per_second, heeds_parent=tracing.heeds_parent)
    return TracedClaims(claims, engine.tracer, sampling, ctx.addresses)


def _line_parts(use: UseCases) -> LineParts:
    return LineParts(
        desk=use.line_desk,
        figures=use.line_figures,
        drawn=use.drawn_list,
        stories=use.stories,
        watches=use.entry_watches,
        rate=AddressRate(use.settings.entries_per_address),
        receipts=Receipts(use.engine.door_key),
    )


def _looking_back(use: UseCases) -> LookingBackParts:
    return LookingBackParts(
        history=use.looking_back,
        summaries=use.sale_summaries,
        timelines=use.timelines,
        alarms=use.alarm_desk,
    )


def _framework(ctx: Context, door_key: bytes) -> Starlette:
    described = ROUTES + (DEMO_ROUTES if signs_anybody_in(ctx.settings) else ())

    async def show_openapi(request: Request) -> Response:
        openapi = _openapi(described, prefix_in(request.scope))
        return Response(openapi, media_type="application/json", headers={"Cache-Control": "public, max-age=60"})

    async def docs(_: Request) -> Response:
        return FileResponse(f"{STATIC}/docs.html", headers=DOCS_HEADERS)

    routes: list[BaseRoute] = [*_by_path(described), *Pages(ctx.settings, ctx.provider).routes()]
    routes += [
        WebSocketRoute("/v1/ws", live),
        StarletteRoute("/openapi.json", show_openapi),
        StarletteRoute("/docs", docs),
        *help_routes(),
        *(ConsoleSignIn(ctx.settings, door_key, ctx.access, ctx.sessions).routes() if ctx.sessions else ()),
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


@lru_cache
def _by_path(routes: tuple[Route, ...]) -> tuple[BaseRoute, ...]:
    """One route for each path, so that a wrong method learns all the right ones. They know nothing of a node: made
    once, also where one process makes several."""
    handlers: dict[str, dict[str, Handler]] = {}
    for route in routes:
        handlers.setdefault(route.path, {})[route.method] = _asked_properly(route)
    # A voucher's code may have any character in it, also a slash.
    return tuple(
        StarletteRoute(path.replace("{code}", "{code:path}"), _dispatch(found), methods=list(found))
        for path, found in handlers.items()
    )


def _asked_properly(route: Route) -> Handler:
    """With no other parameters than it has. What anybody may read is not so strict: it may have come by way of a cache,
    or of a page that adds something to every address."""
    handler, known = route.handler or _nothing, [name for name, _ in route.query]

    async def checked(request: Request) -> Response:
        only(request, known)
        return await handler(request)

    if route.who == "operator":
        return guarded(route, checked)
    return checked if route.who == "buyer" else handler


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
    response = HttpProblem(
        503, "not_in_force", str(error), sale=sale_view(ctx, error.sale, to_operator=True)
    ).response()
    del response.headers["Retry-After"]  # to repeat it would do it twice
    return response


async def _no_seat(request: Request, _: Exception) -> Response:
    detail = "You, or all at your address together, are waiting for too much at once; close some of your pages."
    return await _problem(request, HttpProblem.of(Outcome.RATE_LIMITED, detail))


def _without_code(request: Request) -> str:
    """The path, but for a voucher's code, which is as good as money."""
    return "/v1/admin/vouchers/…" if "code" in request.path_params else request.url.path


async def _internal(request: Request, error: Exception) -> Response:
    log.error("a request failed", method=request.method, path=_without_code(request), exc_info=error)
    return HttpProblem(500, "internal", "Something went wrong on our side; it was logged.").response()
