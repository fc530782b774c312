"""Answers in JSON."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store"}


def json_response(content: object, status: int = 200, headers: Mapping[str, str] = NO_STORE) -> Response:
    """The answer is not cached, unless other headers say so."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


@dataclass(frozen=True, slots=True)
class Tagged:
    """A serialised answer that caches may keep."""

    body: bytes
    etag: str

    @classmethod
    def of(cls, content: msgspec.Struct, tagged: msgspec.Struct | None = None) -> "Tagged":
        """`tagged`: what its tag is made of, if not of all of it."""
        body = msgspec.json.encode(content)
        digest = hashlib.blake2b(body if tagged is None else msgspec.json.encode(tagged), digest_size=12).hexdigest()
        return cls(body, f'W/"{digest}"')

    def response(self, request: Request, max_age_s: int, more: Mapping[str, str] | None = None) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": f"public, max-age={max_age_s}", **(more or {})}
        if self.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self.body, 200, headers, "application/json")


def cacheable(
    request: Request,
    content: msgspec.Struct,
    max_age_s: int,
    tagged: msgspec.Struct | None = None,
    more: Mapping[str, str] | None = None,
) -> Response:
    """`tagged`: what its tag is made of, if not of all of it."""
    return Tagged.of(content, tagged).response(request, max_age_s, more)
