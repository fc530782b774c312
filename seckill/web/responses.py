"""Answers in JSON."""

import hashlib
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store"}


def json_response(content: object, status: int = 200, headers: Mapping[str, str] = NO_STORE) -> Response:
    """Not cached, unless other headers say so."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def cacheable(
    request: Request,
    content: msgspec.Struct,
    max_age_s: int,
    tagged: msgspec.Struct | None = None,
    more: Mapping[str, str] | None = None,
) -> Response:
    """`tagged`: what its tag is made of, if not of all of it."""
    digest = hashlib.blake2b(msgspec.json.encode(tagged or content), digest_size=12).hexdigest()
    headers = {"ETag": f'W/"{digest}"', "Cache-Control": f"public, max-age={max_age_s}", **(more or {})}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return json_response(content, headers=headers)
