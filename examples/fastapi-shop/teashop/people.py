"""Who is signed in here, and how seckill learns who that is."""

import time
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import jwt
from fastapi import APIRouter, Depends, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from seckill.client import AsyncClient
from teashop.passwords import fits, hashed
from teashop.shop import OurShop, Shop
from teashop.tables import users
from teashop.views import show

TOKEN_LIFETIME_S = 15 * 60

router = APIRouter()


@dataclass(frozen=True)
class User:
    id: int
    name: str
    is_staff: bool

    def token(self, shop: Shop) -> str:
        """Says to seckill who this is. `sub` is the shop's own id: events come back with it as `buyer`."""
        claims = {"sub": str(self.id), "exp": int(time.time()) + TOKEN_LIFETIME_S}
        return jwt.encode(claims, shop.settings.jwt_secret, "HS256")

    def in_seckill(self, shop: Shop) -> AsyncClient:
        return shop.seckill.signed_in(self.token(shop))


async def visitor(request: Request, shop: OurShop) -> User | None:
    """Asked for each request, so that every page knows."""
    async with shop.database.connect() as connection:
        mine = select(users).where(users.c.id == request.session.get("user_id", 0))
        found = (await connection.execute(mine)).first()
    user = None if found is None else User(found.id, found.name, found.is_staff)
    request.state.user = user
    return user


Visitor = Annotated[User | None, Depends(visitor)]


async def signed_in(user: Visitor) -> User:
    if user is None:
        raise HTTPException(401, "Sign in first.")
    return user


SignedIn = Annotated[User, Depends(signed_in)]


async def staff(user: SignedIn) -> User:
    if not user.is_staff:
        raise HTTPException(403, "This is for the people of the shop.")
    return user


Staff = Annotated[User, Depends(staff)]


@router.get("/seckill-token")
async def seckill_token(user: SignedIn, shop: OurShop) -> dict[str, str]:
    """The element in the product's page asks for this, with the shop's cookie."""
    return {"token": user.token(shop)}


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    return show(request, "sign_in.html", back=request.query_params.get("return", "/"))


@router.post("/sign-in")
async def sign_in(
    request: Request,
    shop: OurShop,
    name: Annotated[str, Form(min_length=1, max_length=40)],
    password: Annotated[str, Form(min_length=1, max_length=200)],
    back: Annotated[str, Form()] = "/",
    new: Annotated[bool, Form()] = False,
) -> Response:
    async with shop.database.begin() as tx:
        if new:
            try:
                await tx.execute(users.insert().values(name=name, password=hashed(password)))
            except IntegrityError:
                return show(request, "sign_in.html", back=back, problem="Somebody else has that name.")
        found = (await tx.execute(select(users).where(users.c.name == name))).first()
    if found is None or not fits(password, found.password):
        return show(request, "sign_in.html", back=back, problem="Name and password do not fit.")
    request.session["user_id"] = found.id
    return RedirectResponse(back if _is_ours(back, shop) else "/", 303)


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    request.session.clear()
    return RedirectResponse("/", 303)


def _is_ours(address: str, shop: Shop) -> bool:
    """Nobody is sent elsewhere by a link that somebody else has made."""
    parts = urlsplit(address)
    if not parts.netloc:
        return not parts.scheme and address.startswith("/") and not address.startswith(("//", "/\\"))
    return f"{parts.scheme}://{parts.netloc}" == shop.settings.url
