"""The API as types.mjs reads it: its OpenAPI document, and a digest that tells whether the types are current."""

import hashlib
import json
import sys
from typing import Any

from seckill.web.openapi import document


def described() -> dict[str, Any]:
    api = document()
    del api["info"]["version"]  # a release changes no type
    text = json.dumps(api, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {"document": json.loads(text), "digest": hashlib.sha256(text.encode()).hexdigest()}


if __name__ == "__main__":
    json.dump(described(), sys.stdout)
