"""Answers in JSON."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store"}


def json_response(content: object, status: int = 200, headers: Mapping[str, str] = NO_STORE) -> Response:
    """Not cached, unless other headers say so."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")
