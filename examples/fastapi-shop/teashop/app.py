"""The shop, as an ASGI application: `uvicorn teashop.app:app`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.exceptions import HTTPException
from starlette.middleware.sessions import SessionMiddleware

from seckill.client import AsyncClient, ClientError, Refused
from teashop import feed, letters, money, pages, people, staff, tables, words
from teashop.shop import Settings, Shop
from teashop.views import show

settings = Settings.from_environment()


@asynccontextmanager
async def opening_hours(app: FastAPI) -> AsyncIterator[None]:
    database = create_async_engine(f"sqlite+aiosqlite:///{settings.database}")
    await tables.prepare(database)
    async with AsyncClient(settings.seckill_url, settings.admin_key) as seckill:
        app.state.shop = shop = Shop(settings, database, seckill)
        await letters.register(shop)
        await staff.announce_all(shop)
        beside = [asyncio.create_task(feed.follow(shop)), asyncio.create_task(money.keep_telling(shop))]
        yield
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    await database.dispose()


app = FastAPI(lifespan=opening_hours, dependencies=[Depends(people.visitor)])
# `lax`: a form on another site cannot press our buttons for whoever is signed in here.
app.add_middleware(SessionMiddleware, secret_key=settings.session_secret, same_site="lax")
for part in (pages, people, staff, money, letters, words):
    app.include_router(part.router)
app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")


@app.middleware("http")
async def with_policy(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """What a page may load: nothing but the shop's own, and the element's script, pictures and answers of seckill."""
    answer = await call_next(request)
    there = settings.seckill_url
    answer.headers["Content-Security-Policy"] = (
        f"default-src 'self'; script-src {there}; img-src 'self' {there}; "
        f"connect-src 'self' {there} {there.replace('http', 'ws', 1)}; base-uri 'none'; frame-ancestors 'none'"
    )
    return answer


@app.exception_handler(HTTPException)
async def no(request: Request, error: HTTPException) -> Response:
    if error.status_code == 401 and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"/sign-in?return={quote(str(request.url))}", 303)
    return show(request, "no.html", status=error.status_code, says=error.detail)


@app.exception_handler(ClientError)
async def seckill_said_no(request: Request, error: ClientError) -> Response:
    """It refused, and says why; or nobody knows what became of it, and the same again is safe: every form has a key."""
    if isinstance(error, Refused) and error.status < 500:
        return show(request, "no.html", status=error.status, says=str(error))
    return show(request, "no.html", status=503, says="That did not work just now. Go back and press again.")
