"""`/help`: the documents as a site, which `make docs` has built into the package. Nothing in it is loaded from
elsewhere, and it works wherever the application is mounted, because all its addresses are relative."""

import mimetypes
from functools import lru_cache
from importlib.resources.abc import Traversable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from seckill.web.pages.content_security_policy import help_policy
from seckill.web.pages.pages import SHELL_MAX_AGE_S, SITE, Content
from seckill.web.problems import HttpProblem

FIRST = "index.html"
# As many pages as anyone reads in one sitting.
KEPT_MAX = 64


def is_built() -> bool:
    return (SITE / FIRST).is_file()


def help_routes() -> list[BaseRoute]:
    return [Route("/help", _first), Route("/help/{path:path}", _page)]


async def _first(request: Request) -> Response:
    """Redirects to a relative address; no host is named."""
    if not is_built():
        raise HttpProblem(404, "not_found", "The documents are not part of this installation: `make docs` builds them.")
    return Response(None, 307, {"Location": f"help/{FIRST}", "Cache-Control": "no-store"})


async def _page(request: Request) -> Response:
    found = _read(request.path_params["path"])
    if found is None:
        raise HTTPException(404)  # a person sees this as a page
    content, headers = found
    return content.answer(request, f"public, max-age={SHELL_MAX_AGE_S}", headers)


@lru_cache(maxsize=KEPT_MAX)
def _read(path: str) -> tuple[Content, dict[str, str]] | None:
    file = _file(path)
    if file is None:
        return None
    body = file.read_bytes()
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    text = media_type.startswith("text/")
    headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    if media_type == "text/html":
        headers["Content-Security-Policy"] = help_policy(body)
    return Content.of(body, f"{media_type}; charset=utf-8" if text else media_type), headers


def _file(path: str) -> Traversable | None:
    """Finds a file of the site and nothing above it: each part is looked up among the names in its folder."""
    place: Traversable = SITE
    for part in path.split("/"):
        if not place.is_dir():
            return None
        found = [entry for entry in place.iterdir() if entry.name == part]
        if not found:
            return None
        place = found[0]
    return place if place.is_file() else None
