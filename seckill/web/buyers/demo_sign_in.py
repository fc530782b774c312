"""`POST /v1/demo/sign-in`: a buyer's token for any name. The route exists only with `seckill up --demo`."""

import hashlib
import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.buyer_id import BadBuyerId, buyer_id
from seckill.settings import Settings
from seckill.web.buyers.buyer_tokens import mint_buyer_token
from seckill.web.context import context
from seckill.web.problems import address_limited, invalid
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import DemoBuyer, SignedIn

LIFETIME_S = 24 * 3600

_demo_buyer = msgspec.json.Decoder(DemoBuyer)


def signs_anybody_in(settings: Settings) -> bool:
    return settings.demo_sign_in == "on" and settings.jwt_secret is not None


def limit_sign_ins(request: Request) -> None:
    """Raises if too many sign-ins come from one address."""
    ctx = context(request)
    if wait_s := ctx.sign_in_rate.wait_s(ctx.counted_address(request), time.monotonic()):
        raise address_limited(wait_s)


async def demo_sign_in(request: Request) -> Response:
    ctx = context(request)
    settings = ctx.settings
    assert settings.jwt_secret is not None, "without it there is no such route"
    limit_sign_ins(request)
    name = decode(await read_body(request.receive), _demo_buyer).name.strip()
    if not name or not name.isprintable():
        raise invalid("name", "must be a name in one line")
    user = user_called(name)
    token = mint_buyer_token(
        settings.jwt_secret,
        user,
        lifetime_s=LIFETIME_S,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        now=time.time(),
    )
    return json_response(SignedIn(user, token))


def user_called(name: str) -> str:
    """Returns the name itself if it can be a user id, otherwise an id derived from it."""
    try:
        return buyer_id(name)
    except BadBuyerId:
        return f"demo-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"
