"""Kubernetes' own schemas, as far as our manifests use them. They know eight words of JSON Schema."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = json.loads((Path(__file__).parents[1] / "fixtures" / "kubernetes" / "schemas-1.34.json").read_text())
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def faults(manifest: dict[str, Any]) -> list[str]:
    kind = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
    if kind not in SCHEMAS["kinds"]:
        return [f"{kind} is not known"]
    return list(_faults(manifest, {"$ref": SCHEMAS["kinds"][kind]}, kind))


def _faults(value: Any, schema: dict[str, Any], place: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = SCHEMAS["definitions"][schema["$ref"]]
    if "oneOf" in schema:
        if all(list(_faults(value, each, place)) for each in schema["oneOf"]):
            yield f"{place} is neither of those that it may be"
        return
    named = schema.get("type", [])
    types = [named] if isinstance(named, str) else named
    if types and not any(_is(value, each) for each in types):
        yield f"{place} is not {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is none of {schema['enum']}"
    if isinstance(value, dict):
        yield from _faults_inside(value, schema, place)
    for n, item in enumerate(value if isinstance(value, list) else []):
        yield from _faults(item, schema.get("items", {}), f"{place}[{n}]")


def _faults_inside(value: dict[str, Any], schema: dict[str, Any], place: str) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    yield from (f"{place}.{name} is missing" for name in schema.get("required", []) if name not in value)
    for name, inside in value.items():
        if name in properties:
            yield from _faults(inside, properties[name], f"{place}.{name}")
        elif others is False:
            yield f"{place}.{name} is not known"
        elif isinstance(others, dict):
            yield from _faults(inside, others, f"{place}.{name}")


def _is(value: Any, named: str) -> bool:
    return isinstance(value, _TYPES[named]) and (named == "boolean" or not isinstance(value, bool))
