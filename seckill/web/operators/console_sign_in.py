"""Signing in to the console with a provider, and the session that results from it.

    GET  /console/sign-in     to the provider; what is asked goes along in a cookie, sealed
    GET  /console/signed-in   back from it: who it is, and a session
    POST /console/sign-out    the session is over, on every node

No part of a request decides where the browser goes afterwards.
"""

import hashlib
import hmac
import html
import secrets
import time
from string import Template

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from seckill.domain.operator import Operator
from seckill.engine.access.access_desk import AccessDesk
from seckill.errors import LedgerError
from seckill.ports.record import Actor, acting_as
from seckill.settings import Settings
from seckill.web.buyers.demo_sign_in import limit_sign_ins
from seckill.web.mounting import prefix_in
from seckill.web.operators.console_session import ConsoleSessions
from seckill.web.operators.sign_in_provider import LEEWAY_S, NotBelieved, ProviderAway, SignInProvider
from seckill.web.pages.content_security_policy import page_headers
from seckill.web.problems import HttpProblem
from seckill.web.requests.request_ids import current_request_id
from seckill.web.responses import NO_STORE

log = structlog.get_logger()

# How long an operator may take to sign in at the provider.
QUESTION_WITHIN_S = 600

_PAGE = Template(
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<title>seckill</title><link rel="stylesheet" href="${base}/assets/own/app/theme.css">'
    '<link rel="stylesheet" href="${base}/assets/own/app/buyer.css"><link rel="stylesheet" href="${base}/brand.css">'
    '<main><h1>${status}</h1><div class="empty"><p>${english}<br><span lang="zh-CN">${chinese}</span></p>'
    '<a class="button quiet" href="${base}/console">Console · <span lang="zh-CN">控制台</span></a></div></main></html>'
)
_NO_ROLE = (
    "You are signed in as {name}, who has no role here. Ask whoever looks after this shop for one.",
    "你已以 {name} 登录，但在这里没有任何角色。请联系管理员。",
)
_AGAIN = ("This sign-in cannot be used, or no longer. Please begin anew.", "此次登录无效或已失效，请重新登录。")
_REFUSED = ("The provider did not let you sign in.", "身份提供方未允许登录。")
_AWAY = ("The provider does not answer now; please try again.", "身份提供方暂时没有响应，请稍后再试。")


class _Question(msgspec.Struct, frozen=True):
    state: str
    nonce: str
    verifier: str
    asked_s: int


_question = msgspec.json.Decoder(_Question)


class ConsoleSignIn:
    def __init__(self, settings: Settings, key: bytes, desk: AccessDesk, sessions: ConsoleSessions) -> None:
        """`key`: the same on every node that shares the ledger."""
        self.provider = SignInProvider(settings)
        self._key = hashlib.blake2b(key=key, person=b"console sign-in", digest_size=32).digest()
        self._desk = desk
        self._sessions = sessions
        self._lifetime_s = settings.oidc_session_s

    def routes(self) -> list[BaseRoute]:
        return [
            StarletteRoute("/console/sign-in", self.begin),
            StarletteRoute("/console/signed-in", self.finish),
            StarletteRoute("/console/sign-out", self.end, methods=["POST"]),
        ]

    async def begin(self, request: Request) -> Response:
        limit_sign_ins(request)  # each may ask the provider
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        question = _Question(state, nonce, verifier, int(time.time()))
        try:
            there = await self.provider.question(question.state, question.nonce, question.verifier)
        except ProviderAway as error:
            log.warning("nobody can sign in", reason=str(error))
            return _page(request, 503, _AWAY)
        answer = RedirectResponse(there, 303, NO_STORE)
        self._sessions.question.put(answer, self._sealed(question), QUESTION_WITHIN_S)
        return answer

    async def finish(self, request: Request) -> Response:
        limit_sign_ins(request)  # each may ask the provider
        answer = await self._finish(request)
        self._sessions.question.take_away(answer)
        return answer

    async def _finish(self, request: Request) -> Response:
        question = self._opened(self._sessions.question.of(request) or "")
        given = request.query_params
        if question is None or not hmac.compare_digest(given.get("state", "").encode(), question.state.encode()):
            return _page(request, 403, _AGAIN)
        if "error" in given or not given.get("code"):
            log.warning("somebody could not sign in", reason="the provider refuses")
            return _page(request, 403, _REFUSED)
        try:
            person = await self.provider.person(given["code"], question.verifier, question.nonce, given.get("iss"))
        except ProviderAway as error:
            log.warning("nobody can sign in", reason=str(error))
            return _page(request, 503, _AWAY)
        except NotBelieved as error:
            log.warning("somebody could not sign in", reason=str(error))
            return _page(request, 403, _AGAIN)
        if person.operator is None:
            log.warning("somebody without a role has signed in", name=person.name)
            return _page(request, 403, _NO_ROLE, name=person.name)
        return await self._let_in(request, question, person.operator, person.subject)

    async def _let_in(self, request: Request, question: _Question, operator: Operator, subject: str) -> Response:
        with acting_as(Actor(operator.name, current_request_id())):
            facts = {"provider": self.provider.name, "sub": subject}
            made = await self._desk.begin_session(question.state, operator, self._lifetime_s, facts)
        if made is None:
            return _page(request, 403, _AGAIN)
        answer = RedirectResponse("/console", 303, NO_STORE)
        self._sessions.session.put(answer, made.key, self._lifetime_s)
        return answer

    async def end(self, request: Request) -> Response:
        self._sessions.require_our_page(request)
        answer = Response(None, 204, NO_STORE)
        cookie = self._sessions.session.of(request)
        if cookie is not None:
            try:
                operator = await self._sessions.operator(request, cookie)
                with acting_as(Actor(operator.name, current_request_id())):
                    await self._desk.end_session(cookie)
            except HttpProblem as problem:  # the problem is reported, but the session in this browser ends anyway
                answer = problem.response()
            except LedgerError:
                answer = HttpProblem(503, "not_ready", "The session could not be ended everywhere now.").response()
        self._sessions.session.take_away(answer)
        return answer

    def _sealed(self, question: _Question) -> str:
        content = msgspec.json.encode(question).hex()
        return f"{content}.{self._seal(content)}"

    def _opened(self, cookie: str) -> _Question | None:
        content, _, seal = cookie.partition(".")
        if not hmac.compare_digest(seal.encode(), self._seal(content).encode()):
            return None
        question = _question.decode(bytes.fromhex(content))
        age_s = time.time() - question.asked_s
        return question if -LEEWAY_S <= age_s <= QUESTION_WITHIN_S else None

    def _seal(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), hashlib.sha256).hexdigest()


def _page(request: Request, status: int, texts: tuple[str, str], **facts: str) -> Response:
    english, chinese = (html.escape(text.format(**facts)) for text in texts)
    page = _PAGE.substitute(base=html.escape(prefix_in(request.scope)), status=status, english=english, chinese=chinese)
    return Response(page, status, {**page_headers(), **NO_STORE}, "text/html; charset=utf-8")
