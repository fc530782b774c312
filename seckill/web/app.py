"""The ASGI application: the claim route first, then the framework with everything else."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, WebSocketRoute
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.receipt import Receipts
from seckill.engine.door.address_rate import AddressRate
from seckill.engine.traces.sampling import Sampling
from seckill.errors import LedgerError
from seckill.loops import Stop
from seckill.native.ring_choice import open_ring
from seckill.operations.presence import present
from seckill.operations.repair import Repair
from seckill.operations.server_look import ServerLooks
from seckill.settings import Settings
from seckill.settings.otel import Tracing
from seckill.telemetry import Exposition
from seckill.web.answer_headers import Envelope
from seckill.web.buyers.buyer_tokens import Buyers
from seckill.web.buyers.demo_sign_in import signs_anybody_in
from seckill.web.buyers.key_set import KeySet
from seckill.web.buyers.token_groups import TokenGroups
from seckill.web.buyers.token_keys import TokenKeys
from seckill.web.claims.buyer_rate import Rates
from seckill.web.claims.claim import ClaimRoute
from seckill.web.claims.claim_wait import ClaimWait
from seckill.web.claims.plain_claim import plain_claim_reader
from seckill.web.claims.traced_claims import TracedClaims
from seckill.web.claims.turn_buffer import TurnBuffer
from seckill.web.connections.waiting_seats import Seats
from seckill.web.console.looking_back_parts import LookingBackParts
from seckill.web.context import Context
from seckill.web.cross_origin import CrossOrigin
from seckill.web.door.claim_door import ClaimDoor
from seckill.web.error_answers import ERROR_ANSWERS
from seckill.web.incidents import Incidents
from seckill.web.line.line_join import JoinRoute
from seckill.web.line.line_parts import LineParts
from seckill.web.live_updates.websocket import live
from seckill.web.mounting import prefix_in
from seckill.web.node_schedule import begin_schedule
from seckill.web.openapi import document
from seckill.web.operators.admin_key import AdminKey
from seckill.web.operators.console_session import ConsoleSessions
from seckill.web.operators.console_sign_in import ConsoleSignIn
from seckill.web.operators.guess_backoff import GuessBackoff
from seckill.web.operators.operator_check import OperatorCheck
from seckill.web.operators.role_check import guarded
from seckill.web.orders.buyer_orders import view as order_view
from seckill.web.orders.order_ids import OrderIds
from seckill.web.pages.content_security_policy import DOCS_HEADERS
from seckill.web.pages.help_pages import help_routes
from seckill.web.pages.pages import EMBED_LOADS, EMBED_PATHS, PREFIXES_MAX, Pages
from seckill.web.problems import HttpProblem, incident_in, not_found
from seckill.web.requests.client_address import ClientAddresses, Headers
from seckill.web.requests.parameters import only
from seckill.web.routes import DEMO_ROUTES, ROUTES, Handler, Route
from seckill.web.sales.item_ids import ItemIds
from seckill.web.sales.sale_list import SaleLists

STATIC = str(files("seckill.web") / "static")


class Api:
    """One API process: the handlers, and the loops that keep its knowledge fresh."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        order_ids = OrderIds(engine.order_ids)
        self.turn = TurnBuffer(open_ring())
        use = UseCases(engine, settings, before_answers=order_ids.prepare, after_answers=self.turn.send)
        addresses = ClientAddresses(settings.trusted_proxies)
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
            servers=ServerLooks(settings),
            repair=Repair(use),
            payments=use.payments,
            on_the_way=use.on_the_way,
            checkouts=use.checkouts,
            refunds=use.refunds,
            webhooks=use.webhooks,
            webhook_tests=use.webhook_tests,
            buyers=_buyers(use),
            access_book=use.access_book,
            access=use.access_desk,
            record=use.record_desk,
            seats=Seats(settings.streams_per_address),
            addresses=addresses,
            incidents=Incidents(),
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
            operators=_operators(use, addresses),
        )
        ctx = self.context
        self.claims = _claim_route(ctx, use, order_ids, self._note_claim)
        self.joins = JoinRoute(ctx, self.turn.send)
        # None: nothing is traced, and no code checks whether it should be.
        self.traced = _traced(self.claims, ctx, engine)
        self._claim = self.traced or self.claims
        self.read_plain_claim = plain_claim_reader(
            settings.jwt_issuer, settings.jwt_audience, with_origin=bool(settings.origins)
        )
        self._unpaid_units = use.unpaid_units
        self._engine = engine
        self._rest = _framework(ctx, engine.door_key)
        # None: no page of another origin may call us, and no headers are sent for that.
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
        with suppress(LedgerError):  # if it fails, the loop will do it; until then it is unknown who may buy
            await ctx.access_book.refresh()

        loops = begin_schedule(ctx, engine, self._unpaid_units, stop)

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


def _operators(use: UseCases, addresses: ClientAddresses) -> OperatorCheck:
    settings = use.settings
    admin_key = AdminKey(settings.admin_key, settings.admin_key_old)
    sessions = ConsoleSessions(settings.public_url, use.access_book) if settings.oidc_url else None
    return OperatorCheck(admin_key, use.access_book, GuessBackoff(time.monotonic), addresses, sessions)


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
    sessions = ctx.operators.sessions

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
        *(ConsoleSignIn(ctx.settings, door_key, ctx.access, sessions).routes() if sessions else ()),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers=ERROR_ANSWERS,
    )
    # Such a redirect would name a host taken from a header, and would forget whether it was https.
    app.router.redirect_slashes = False
    app.state.context = ctx
    return app


@lru_cache(maxsize=PREFIXES_MAX)
def _openapi(routes: tuple[Route, ...], prefix: str) -> bytes:
    """Makes the document once, even where one process makes several nodes."""
    return msgspec.json.encode(document(routes, prefix))


@lru_cache
def _by_path(routes: tuple[Route, ...]) -> tuple[BaseRoute, ...]:
    """Makes one route for each path, so that the answer to a wrong method names all the right ones. The routes do not
    depend on a node, so they are made once, even where one process makes several nodes."""
    handlers: dict[str, dict[str, Handler]] = {}
    for route in routes:
        handlers.setdefault(route.path, {})[route.method] = _asked_properly(route)
    # A voucher's code may contain any character, even a slash.
    return tuple(
        StarletteRoute(path.replace("{code}", "{code:path}"), _dispatch(found), methods=list(found))
        for path, found in handlers.items()
    )


def _asked_properly(route: Route) -> Handler:
    """Refuses parameters that the route does not have. Public resources are not so strict: such a request may come
    through a cache, or from a page that adds something to every address."""
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
    """Takes the claim route's place in the framework, which is not asked: the route has answered before."""
    raise not_found()
