"""The session of an operator who has signed in to the console, and which requests it is valid for.

It is a secret in a cookie that no script can read, and a row in the ledger, like a key. So it ends with its time, or
within seconds after it is revoked. A browser sends cookies whichever page makes the request. So a session only counts
for requests with a header that a page of another origin cannot set, and never for requests that say they come from such
a page.
"""

from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.operator import Operator
from seckill.domain.outcome import Outcome
from seckill.engine.access.access_book import AccessBook, NoOperator
from seckill.web.problems import HttpProblem

HEADER = "seckill-console"


class HiddenCookie:
    """A cookie that no script can read."""

    def __init__(self, name: str, same_site: Literal["lax", "strict"], *, secure: bool) -> None:
        # With this prefix, no other host of the same domain can set one in its place.
        self.name = f"__Host-{name}" if secure else name
        self._same_site = same_site
        self._secure = secure

    def of(self, request: Request) -> str | None:
        return request.cookies.get(self.name)

    def put(self, answer: Response, value: str, lifetime_s: int) -> None:
        answer.set_cookie(self.name, value, lifetime_s, secure=self._secure, httponly=True, samesite=self._same_site)

    def take_away(self, answer: Response) -> None:
        answer.delete_cookie(self.name, secure=self._secure, httponly=True, samesite=self._same_site)


class ConsoleSessions:
    def __init__(self, public_url: str, book: AccessBook) -> None:
        public = urlsplit(public_url)
        self._origin = f"{public.scheme}://{public.netloc}".lower()
        self._book = book
        secure = public.scheme == "https"
        self.session = HiddenCookie("seckill-session", "strict", secure=secure)
        # The sealed question to the provider, whose page sends the browser back here.
        self.question = HiddenCookie("seckill-question", "lax", secure=secure)

    def cookie_of(self, request: Request) -> str | None:
        """Returns None if the request has no cookie, or goes by a key."""
        return None if "authorization" in request.headers else self.session.of(request)

    def require_our_page(self, request: Request) -> None:
        if not self._is_our_page(request):
            raise HttpProblem(403, "forbidden", "Only the console itself may ask with a session.")

    async def operator(self, request: Request, cookie: str) -> Operator:
        self.require_our_page(request)
        found = await self._book.session(cookie)
        if isinstance(found, Operator):
            return found
        if found is NoOperator.NOT_KNOWN:
            raise HttpProblem.of(Outcome.NOT_READY, "Your session cannot be checked now; please try again.")
        raise HttpProblem.of(Outcome.UNAUTHENTICATED, "Your session is over: sign in again.")

    async def is_operator(self, request: Request, cookie: str) -> bool:
        return self._is_our_page(request) and isinstance(await self._book.session(cookie), Operator)

    def _is_our_page(self, request: Request) -> bool:
        headers = request.headers
        return (
            headers.get(HEADER) == "1"
            and headers.get("origin", self._origin).lower() == self._origin
            and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        )
