"""Lets pages of the origins in `SECKILL_ORIGINS` call us, but only on the routes for buyers.

A browser only lets a page read our answers if they name its origin (CORS). So routes for operators never do, and
neither does any answer to an origin that is not in the list. Nothing here goes by cookies: a page has no more power
than the token that it sends.

    before a claim   OPTIONS, answered here from what is prepared, and kept by the browser for two hours
    every answer     `Vary: Origin` where it may depend on it, so that no cache gives one origin's answer to another
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from seckill.web.routes import Route

# Chromium keeps it no longer than this.
PREFLIGHT_MAX_AGE_S = 7200
# What a page may read besides the few that browsers always show.
EXPOSED = b"Location, Retry-After, Preference-Applied, X-Request-Id, ETag"
# What requests of every route may carry; a route's own are in the table of routes.
_HEADERS = ("Authorization", "Content-Type", "X-Request-Id")
_BUYERS = ("all", "buyer")
_VARY = b"vary: Origin\r\n"


class CrossOrigin:
    def __init__(self, origins: Sequence[str], routes: Iterable[Route], files: Iterable[str] = ()) -> None:
        """`files`: paths of scripts, which are fetched like calls."""
        self._lines = {
            origin.encode(): b"%baccess-control-allow-origin: %b\r\naccess-control-expose-headers: %b\r\n"
            % (_VARY, origin.encode(), EXPOSED)
            for origin in origins
        }
        open_to_pages = [(route.path, route.method, route.headers) for route in routes if _is_for_buyers(route)]
        self._resources = _resources([*open_to_pages, *((path, "GET", ()) for path in files)])

    def lines(self, origin: bytes | None) -> bytes:
        """Returns the header lines for the answer to a claim, as they are sent."""
        return self._lines.get(origin, _VARY) if origin is not None else _VARY

    def around(self, app: Any) -> Any:
        async def with_origins(scope: Any, receive: Any, send: Any) -> None:
            resource = self._resource(scope["path"]) if scope["type"] == "http" else None
            if resource is None:
                await app(scope, receive, send)
                return
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            origin = _origin_in(scope["headers"])
            if method == "OPTIONS" and origin is not None and origin in self._lines:
                await _answer_options(resource, origin, send)
            elif method in resource.methods:
                await app(scope, receive, self._sending(origin, send))
            else:
                await app(scope, receive, send)

        return with_origins

    def _resource(self, path: str) -> "_Resource | None":
        return next((resource for resource in self._resources if resource.pattern.fullmatch(path)), None)

    def _sending(self, origin: bytes | None, send: Any) -> Any:
        added = [_pair(line) for line in self.lines(origin).split(b"\r\n")[:-1]]

        async def send_with_origin(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        return send_with_origin


class _Resource:
    def __init__(self, path: str) -> None:
        self.pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
        self.methods = {"OPTIONS"}
        self.headers = list(_HEADERS)


def _origin_in(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Returns None also if several are given, which no browser does."""
    given = [value for name, value in headers if name == b"origin"]
    return given[0] if len(given) == 1 else None


def _is_for_buyers(route: Route) -> bool:
    return route.who in _BUYERS and route.path.startswith("/v1/")


def _resources(found: Iterable[tuple[str, str, Sequence[tuple[str, str]]]]) -> list[_Resource]:
    by_path: dict[str, _Resource] = {}
    for path, method, headers in found:
        resource = by_path.setdefault(path, _Resource(path))
        resource.methods.add(method)
        resource.headers += [name for name, _ in headers]
    return list(by_path.values())


async def _answer_options(resource: _Resource, origin: bytes, send: Any) -> None:
    """Answers with the methods that buyers may use, even if the question is about another one: the browser compares."""
    headers = [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", ", ".join(sorted(resource.methods)).encode()),
        (b"access-control-allow-headers", ", ".join(resource.headers).encode()),
        (b"access-control-max-age", b"%d" % PREFLIGHT_MAX_AGE_S),
        (b"allow", ", ".join(sorted(resource.methods)).encode()),
        (b"vary", b"Origin"),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _pair(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b": ")
    return name, value
