"""Reads a request's body, with limits, and then strictly into a schema."""

import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from seckill.web.problems import HttpProblem, invalid

BODY_BYTES_MAX = 64 * 1024
# JSON nested deeper than this is an attack, not an order; the parser would stop only at the end of the stack.
DEPTH_MAX = 32

T = TypeVar("T")


async def read_body(receive: Callable[[], Awaitable[Any]]) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpProblem(400, "bad_request", "The request broke off.")
        body += message.get("body", b"")
        if len(body) > BODY_BYTES_MAX:
            raise HttpProblem(413, "too_large", f"A body may have {BODY_BYTES_MAX // 1024} KiB at most.")
        if not message.get("more_body", False):
            return bytes(body)


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """An empty body is an empty object: all fields at their defaults."""
    if len(body) > DEPTH_MAX and body.count(b"[") + body.count(b"{") > DEPTH_MAX and _depth(body) > DEPTH_MAX:
        raise HttpProblem(400, "bad_request", "The body is nested too deeply.")
    try:
        decoded = decoder.decode(body or b"{}")
    except msgspec.ValidationError as error:
        raise invalid(*field_and_message(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise HttpProblem(400, "bad_request", "The body is not valid JSON.") from None
    if body.count(b":") > 1 and (twice := _given_twice(body)) is not None:  # a body with one field has no second
        raise invalid(twice, "is given twice")
    return decoded


def _given_twice(body: bytes) -> str | None:
    """Finds a name that an object has twice: proxies on the way might use one of its values and we the other."""
    found: list[str] = []

    def look(pairs: list[tuple[str, object]]) -> None:
        names = set[str]()
        for name, _ in pairs:
            if name in names:
                found.append(name)
            names.add(name)

    with contextlib.suppress(ValueError, RecursionError):  # a body that is not JSON is refused as such
        json.loads(body, object_pairs_hook=look)
    return found[0] if found else None


# One that nobody closes goes on to the end of the body. If it had to be closed, each of its quotation marks would be
# tried as the beginning of another, which takes seconds for a body that is all quotation marks.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def _depth(body: bytes) -> int:
    depth = deepest = 0
    for bracket in re.findall(rb"[\[{\]}]", _STRING.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


# Patterns of msgspec's messages, and sentences that readers understand. The first that matches counts.
_SENTENCES: tuple[tuple[str, str], ...] = (
    (r"missing required field", "is missing"),
    (r"unknown field", "is not a field of this request"),
    (r"Expected `int` >= (\d+)", r"must be a whole number, \1 or more"),
    (r"Expected `int` <= (\d+)", r"must be a whole number, \1 at most"),
    (r"Expected `int(?: \| null)?`|Integer value out of range", "must be a whole number"),
    (r"Expected `str` of length >= 1", "must not be empty"),
    (r"Expected `str` of length <= (\d+)", r"must have at most \1 characters"),
    (r"matching regex '\^\[A-Z\]\{3\}\$", "must be three capital letters, such as CNY"),
    (r"matching regex '\^\[A-Za-z0-9_\.:/-\]", "must be 1 to 64 letters, digits and . _ : / -"),
    (r"matching regex '\^\[A-Za-z0-9_\.:-\]", "must be 1 to 64 letters, digits and . _ : -"),
    (r"matching regex '\^\[!-9;-~\]", "must be in ASCII, without spaces and colons"),
    (r"matching regex '\^\((\w+)\|(\w+)\)\$", r"must be \1 or \2"),
    (r"matching regex '\^\((\w+)\|(\w+)\|(\w+)\)\$", r"must be \1, \2 or \3"),
    (r"timezone component", "must say its time zone, as in 2026-11-20T10:00:00+08:00"),
    (r"Expected `datetime`|RFC3339", "must be a time such as 2026-11-20T10:00:00+08:00"),
    (r"Expected `str", "must be text"),
    (r"Expected `bool", "must be true or false"),
    (r"Expected `object", "must be a JSON object"),
)


def field_and_message(text: str) -> tuple[str, str]:
    """msgspec says "Expected `int`, got `str` - at `$.units`" or names the field in the sentence itself."""
    message, _, path = text.partition(" - at `$")
    named = re.search(r"field `([^`]*)`", message)
    # The path leads to the object that contains the field.
    field = ".".join(filter(None, (path.strip("`").lstrip("."), named.group(1) if named else ""))) or "body"
    for pattern, sentence in _SENTENCES:
        if found := re.search(pattern, message):
            return field, found.expand(sentence)
    return field, message
