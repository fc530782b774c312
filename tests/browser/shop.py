"""A shop of its own: another origin than the API's, with its own pages, cookies, policy and people."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tests.public.serving import on_a_port

COOKIE = "shop-user"


@dataclass
class Shop:
    url: str = ""
    # By the name of its page: HTML, and the policy that it is sent with.
    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    sign: Callable[[str], str] = str  # a token for a user
    asked: list[str | None] = field(default_factory=list)  # whom the token was for, each time

    @property
    def foreign_url(self) -> str:
        """The same shop under a name that is not allowed."""
        return self.url.replace("127.0.0.1", "localhost")

    async def show(self, request: Request) -> Response:
        page, policy = self.pages[request.path_params["name"]]
        answer = HTMLResponse(page, headers={"Content-Security-Policy": policy})
        if "user" in request.query_params:
            answer.set_cookie(COOKIE, request.query_params["user"], httponly=True, samesite="strict")
        return answer

    async def token(self, request: Request) -> Response:
        user = request.cookies.get(COOKIE)
        self.asked.append(user)
        if user is None:
            return Response(status_code=401)
        return JSONResponse({"token": self.sign(user)})


@asynccontextmanager
async def open_shop() -> AsyncIterator[Shop]:
    shop = Shop()
    routes = [Route("/seckill-token", shop.token), Route("/{name}", shop.show)]
    async with on_a_port(Starlette(routes=routes)) as shop.url:
        yield shop
