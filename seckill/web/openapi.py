"""The OpenAPI document, made from the table of routes and the schemas."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from seckill import __version__
from seckill.backends.payment.callback_signature import HEADER
from seckill.web.problems import ANSWERS, MEDIA_TYPE
from seckill.web.routes import ROUTES, Route
from seckill.web.schemas import NewSale, Problem, SalePatch

_REF = "#/components/schemas/{name}"
_SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "all": [],
    "buyer": [{"buyer": []}],
    "operator": [{"operator": []}],
    "provider": [{"provider": []}],
}
_DESCRIPTION = (
    "A flash-sale engine. Errors are problem+json with a stable `code`. Every answer has an `X-Request-Id`: the one "
    "that was sent if it is short and plain, otherwise one of ours; it is also in the log.\n\n"
    "Besides what is listed here there is a WebSocket at `/v1/ws`, which OpenAPI cannot describe. The first message is "
    '`{"token": …}` with a buyer\'s token, each further one `{"watch": order_id}` or `{"watch": entry_id}`; the server '
    "sends that `Order` or `Entry` at once and at each change."
)
_TAGS = {"all": "everybody", "buyer": "buyers", "operator": "operators", "provider": "payment providers"}
_EXAMPLES: dict[type, dict[str, object]] = {
    NewSale: {
        "title": "Phone",
        "units": 100,
        "limit_per_buyer": 1,
        "price_cents": 9900,
        "currency": "CNY",
        "begins_at": "2026-11-20T10:00:00+08:00",
        "ends_at": "2036-11-20T11:00:00+08:00",
    },
    SalePatch: {"add_units": 10},
}


def document(routes: Sequence[Route] = ROUTES, prefix: str = "") -> dict[str, Any]:
    """`prefix`: the path that the API is under."""
    types = {Problem, *(t for route in routes for t in (route.body, route.answer) if t is not None)}
    types |= {body for route in routes for _, _, body in route.others}
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "seckill",
            "version": __version__,
            "description": _DESCRIPTION,
        },
        **({"servers": [{"url": prefix}]} if prefix else {}),
        "tags": [{"name": name} for name in sorted(_TAGS.values())],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "buyer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "operator": {"type": "http", "scheme": "bearer", "description": "An operator's key"},
                "provider": {
                    "type": "apiKey",
                    "in": "header",
                    "name": HEADER,
                    "description": "`t=<unix seconds>,v1=<HMAC-SHA256 of t.body>`",
                },
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    denied = {"all": (), "buyer": (401,), "operator": (401, 403), "provider": (401,)}[route.who]
    responses = {str(route.status): _response(route)}
    responses |= {str(status): _content(text, body, route.media_type) for status, text, body in route.others}
    responses |= {str(status): _response(route) | {"description": text} for status, text in route.also}
    responses |= {str(status): {"description": text} for status, text in route.empty_answers}
    responses |= {str(status): _problem(route, status) for status in sorted({*route.problems, *denied})}
    operation: dict[str, Any] = {
        "summary": route.summary,
        **({} if route.role is None else {"description": f"Needs the role `{route.role}`."}),
        "tags": [_TAGS[route.who]],
        "operationId": _operation_id(route),
        "security": _SECURITY[route.who],
        "parameters": _parameters(route),
        "responses": responses,
    }
    if route.body is not None:
        schema = {"$ref": _REF.format(name=route.body.__name__)}
        content = {"schema": schema} | ({"example": _EXAMPLES[route.body]} if route.body in _EXAMPLES else {})
        needed = any(field.required for field in msgspec.structs.fields(route.body))
        operation["requestBody"] = {"required": needed, "content": {"application/json": content}}
    if route.upload is not None:
        operation["requestBody"] = {"required": True, "content": {route.upload: {"schema": {"type": "string"}}}}
    return operation


def _operation_id(route: Route) -> str:
    return "create_order" if route.handler is None else route.handler.__name__


def _response(route: Route) -> dict[str, Any]:
    if route.answer is None:
        return {"description": route.summary}
    return _content(route.summary, route.answer, route.media_type)


def _content(text: str, body: type[msgspec.Struct], media_type: str) -> dict[str, Any]:
    return {"description": text, "content": {media_type: {"schema": {"$ref": _REF.format(name=body.__name__)}}}}


def _problem(route: Route, status: int) -> dict[str, Any]:
    codes = [f"`{outcome}`" for outcome, (found, _) in ANSWERS.items() if found == status]
    return {
        "description": ", ".join(codes) if codes and route.handler is None else "Refused",
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
