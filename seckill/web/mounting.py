"""The API under a path of another application, such as `/sale`.

Inside, every path is as if the API had the host to itself. Only where a path is shown to the outside is the prefix
added: in the pages, the OpenAPI document, and `Location`.
"""

from typing import Any
from urllib.parse import quote

_PREFIX = "seckill.prefix"
# The keys that ASGI itself puts into a scope. Others are the surrounding framework's, which ours would mistake for its
# own.
_OF_ASGI = (
    "type",
    "asgi",
    "http_version",
    "method",
    "scheme",
    "path",
    "raw_path",
    "query_string",
    "headers",
    "client",
    "server",
    "subprotocols",
    "extensions",
)


def prefix_in(scope: Any) -> str:
    """Returns the prefix as it is in an address, beginning but not ending with a slash. Empty: the API has the host to
    itself."""
    prefix: str = scope.get(_PREFIX, "")
    return prefix


class UnderAnyPath:
    """Lets the API answer wherever it was mounted."""

    def __init__(self, api: Any) -> None:
        self._api = api

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        own = _as_if_alone(scope)
        await self._api(own, receive, _with_prefix(prefix_in(own).encode(), send))


def _as_if_alone(scope: Any) -> Any:
    """The scope with its path below the `root_path`, which is kept as the prefix."""
    prefix = str(scope.get("root_path") or "").rstrip("/")
    own = {name: scope[name] for name in _OF_ASGI if name in scope}
    own["path"] = _below(prefix, scope["path"])
    own["raw_path"] = _below(quote(prefix).encode(), scope.get("raw_path") or quote(scope["path"]).encode())
    own.setdefault("client", None)
    return own | {"root_path": "", _PREFIX: quote(prefix)}


def _below(prefix: Any, path: Any) -> Any:
    """Servers differ: with some, the path has the `root_path` at its beginning; others leave it out."""
    if not prefix or path[: len(prefix)] != prefix or path[len(prefix) : len(prefix) + 1] not in ("", "/", b"", b"/"):
        return path
    return path[len(prefix) :] or path[:1]


def _with_prefix(prefix: bytes, send: Any) -> Any:
    """Adds the prefix to `Location` in everything that is sent."""
    if not prefix:
        return send

    async def send_with_prefix(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [
                (name, prefix + value if name.lower() == b"location" and value.startswith(b"/") else value)
                for name, value in message["headers"]
            ]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_prefix
