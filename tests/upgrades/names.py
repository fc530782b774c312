"""Every name that others write into their programs and files: what may be sent, what comes back, settings, codes."""

from collections.abc import Iterator
from typing import Any

from seckill.cli.command_list import COMMANDS
from seckill.domain.event import EventType
from seckill.settings import TABLE
from seckill.web.openapi import document
from seckill.web.problems import ANSWERS

Names = dict[str, list[str]]


def names() -> Names:
    api = document()
    found: Names = {name: [] for name in ("routes", "sent", "demanded", "answered")}
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            route = f"{method.upper()} {path}"
            found["routes"].append(route)
            for kind, of_body, of_answers in (("sent", True, False), ("answered", False, True)):
                found[kind] += sorted(set(_fields(api, route, operation, of_body=of_body, of_answers=of_answers)))
            found["demanded"] += sorted(set(_demanded(api, route, operation)))
    return found | {
        "codes": sorted(ANSWERS),
        "events": sorted(EventType),
        "settings": sorted(setting.variable for setting in TABLE),
        "commands": sorted(COMMANDS),
    }


def _fields(
    api: dict[str, Any], route: str, operation: dict[str, Any], *, of_body: bool, of_answers: bool
) -> Iterator[str]:
    if of_body:
        for parameter in operation.get("parameters", []):
            yield f"{route} {parameter['in']} {parameter['name']}"
        for schema in _schemas(operation.get("requestBody", {})):
            yield from (f"{route} {name}" for name in _properties(api, schema, ()))
    if of_answers:
        for status, answer in operation["responses"].items():
            for schema in _schemas(answer):
                yield from (f"{route} {status} {name}" for name in _properties(api, schema, ()))


def _demanded(api: dict[str, Any], route: str, operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", []):
        if parameter.get("required"):
            yield f"{route} {parameter['in']} {parameter['name']}"
    for schema in _schemas(operation.get("requestBody", {})):
        yield from (f"{route} .{name}" for name in _resolved(api, schema).get("required", []))


def _schemas(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for content in part.get("content", {}).values():
        if "schema" in content:
            yield content["schema"]


def _resolved(api: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = api["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _properties(
    api: dict[str, Any], schema: dict[str, Any], inside: tuple[int, ...], prefix: str = ""
) -> Iterator[str]:
    schema = _resolved(api, schema)
    if id(schema) in inside:  # one that holds others of its kind
        return
    inside = (*inside, id(schema))
    for part in (*schema.get("anyOf", []), *schema.get("oneOf", [])):
        yield from _properties(api, part, inside, prefix)
    if isinstance(schema.get("items"), dict):
        yield from _properties(api, schema["items"], inside, f"{prefix}[]")
    for name, of in schema.get("properties", {}).items():
        yield f"{prefix}.{name}"
        yield from _properties(api, of, inside, f"{prefix}.{name}")
