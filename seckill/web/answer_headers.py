"""The headers of every answer, added here so that no handler can forget them.

    X-Request-Id             the request's name, which is also in what is logged about it
    X-Content-Type-Options   no client is to guess what it is
    Cache-Control            an error is not kept, unless it says so itself
    Content-Security-Policy  a page without one of its own may do nothing at all

Another spelling of an address is always answered with 404.
"""

from typing import Any

import structlog

from seckill.web.pages.content_security_policy import NOTHING_ALLOWED
from seckill.web.problems import MEDIA_TYPE, not_found
from seckill.web.requests.canonical_path import is_canonical
from seckill.web.requests.request_ids import HEADER, request_id_in

_STARTS = {"http.response.start", "websocket.http.response.start", "websocket.accept"}
_POLICY = (b"content-security-policy", NOTHING_ALLOWED)
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_NO_STORE = (b"cache-control", b"no-store")


class Envelope:
    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        named = (HEADER, request_id_in(scope["headers"]))
        # The context belongs to this request alone, since every request runs in a task of its own.
        structlog.contextvars.bind_contextvars(request_id=named[1].decode())

        async def send_enveloped(message: Any) -> None:
            if message["type"] in _STARTS:
                headers = list(message.get("headers", ()))
                message = {**message, "headers": [*headers, named, *_missing(message, headers)]}
            await send(message)

        if is_canonical(scope["raw_path"]):
            await self._app(scope, receive, send_enveloped)
        else:
            await _answer_nothing(scope["type"], send_enveloped)


def _missing(message: Any, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    if message["type"] == "websocket.accept":
        return []
    there = {name.lower(): value for name, value in headers}
    missing = [] if _NOSNIFF[0] in there else [_NOSNIFF]
    if message["status"] >= 400 and _NO_STORE[0] not in there:
        missing.append(_NO_STORE)
    if there.get(b"content-type", b"").startswith(b"text/html") and _POLICY[0] not in there:
        missing.append(_POLICY)
    return missing


async def _answer_nothing(kind: str, send: Any) -> None:
    prefix = "websocket.http" if kind == "websocket" else "http"
    body = not_found().body()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": f"{prefix}.response.start", "status": 404, "headers": headers})
    await send({"type": f"{prefix}.response.body", "body": body})
