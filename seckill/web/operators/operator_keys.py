"""Operators' keys, and who the caller is."""

import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.operator import RESERVED
from seckill.domain.operator_key import OperatorKey as Known
from seckill.web.context import Context, context
from seckill.web.operators.access_schemas import Me, NewOperatorKey, OperatorKey, OperatorKeys
from seckill.web.operators.role_check import operator_in
from seckill.web.problems import invalid, no_such
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import NO_STORE, json_response
from seckill.web.schemas import rfc3339, rfc3339_or_none

_new_key = msgspec.json.Decoder(NewOperatorKey)
_KEY_ID = re.compile(r"[0-9a-f]{1,16}")


async def create_operator_key(request: Request) -> Response:
    ctx = context(request)
    wish = decode(await read_body(request.receive), _new_key)
    name = wish.name.strip()
    if not name or not name.isprintable():
        raise invalid("name", "must be a name in one line")
    if name.casefold() in RESERVED:
        raise invalid("name", "is reserved: no operator may have this name")
    made = await ctx.access.create_key(name, wish.role, wish.expires_in_s, operator_in(request).name)
    shown = _view(ctx, made.known)
    shown.key = made.key
    return json_response(shown, 201, NO_STORE)


async def list_operator_keys(request: Request) -> Response:
    ctx = context(request)
    return json_response(OperatorKeys([_view(ctx, key) for key in await ctx.access.keys()]))


async def revoke_operator_key(request: Request) -> Response:
    ctx = context(request)
    key_id = request.path_params["key_id"]
    revoked = await ctx.access.revoke_key(key_id) if _KEY_ID.fullmatch(key_id) else None
    if revoked is None:
        raise no_such("key", key_id)
    return json_response(_view(ctx, revoked))


async def show_me(request: Request) -> Response:
    operator = operator_in(request)
    return json_response(Me(name=operator.name, role=operator.role), headers=NO_STORE)


def _view(ctx: Context, key: Known) -> OperatorKey:
    expired = key.expires_ms is not None and ctx.sale_cache.now_ms() >= key.expires_ms
    return OperatorKey(
        id=key.id,
        name=key.name,
        role=key.role,
        state="revoked" if key.revoked_ms is not None else "expired" if expired else "active",
        created_at=rfc3339(key.created_ms),
        created_by=key.created_by,
        expires_at=rfc3339_or_none(key.expires_ms),
        revoked_at=rfc3339_or_none(key.revoked_ms),
    )
