"""The OpenAPI document, made from the table of routes and the schemas."""

import re
from typing import Any

import msgspec

from seckill import __version__
from seckill.web.problems import MEDIA_TYPE
from seckill.web.routes import ROUTES, Route
from seckill.web.schemas import Problem

_REF = "#/components/schemas/{name}"
_SECURITY: dict[str, list[dict[str, list[str]]]] = {"all": [], "buyer": [{"buyer": []}], "operator": [{"operator": []}]}
_DESCRIPTION = (
    "A flash-sale engine. Errors are problem+json with a stable `code`.\n\n"
    "Besides what is listed here there is a WebSocket at `/v1/ws`, which OpenAPI cannot describe. The first message is "
    '`{"token": …}` with a buyer\'s token, each further one `{"watch": order_id}`; the server sends that `Order` at '
    "once and at each change."
)
_TAGS = {"all": "everybody", "buyer": "buyers", "operator": "operators"}


def document() -> dict[str, Any]:
    types = {Problem, *(t for route in ROUTES for t in (route.body, route.answer) if t is not None)}
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "seckill",
            "version": __version__,
            "description": _DESCRIPTION,
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "buyer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "operator": {"type": "http", "scheme": "bearer", "description": "The admin key"},
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    denied = {"all": (), "buyer": (401,), "operator": (401, 403)}[route.who]
    responses = {str(route.status): _response(route)}
    responses |= {str(status): {"description": text} for status, text in route.empty_answers}
    responses |= {str(status): _problem() for status in sorted({*route.problems, *denied})}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "tags": [_TAGS[route.who]],
        "operationId": _operation_id(route),
        "security": _SECURITY[route.who],
        "parameters": _parameters(route),
        "responses": responses,
    }
    if route.body is not None:
        schema = {"$ref": _REF.format(name=route.body.__name__)}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _operation_id(route: Route) -> str:
    words = re.findall(r"[a-z]+", route.path.replace("{sale_id}", "sale").replace("{order_id}", "order"))
    return "_".join([route.method.lower(), *words])


def _response(route: Route) -> dict[str, Any]:
    if route.answer is None:
        return {"description": route.summary}
    schema = {"$ref": _REF.format(name=route.answer.__name__)}
    return {"description": route.summary, "content": {route.media_type: {"schema": schema}}}


def _problem() -> dict[str, Any]:
    return {
        "description": "Refused",
        "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
    }


def _parameters(route: Route) -> list[dict[str, Any]]:
    def parameter(name: str, where: str, text: str = "") -> dict[str, Any]:
        return {
            "name": name,
            "in": where,
            "required": where == "path",
            "description": text,
            "schema": {"type": "string"},
        }

    return [
        *(parameter(name, "path") for name in re.findall(r"{(\w+)}", route.path)),
        *(parameter(name, "query", text) for name, text in route.query),
        *(parameter(name, "header", text) for name, text in route.headers),
    ]
