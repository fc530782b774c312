"""A shop's own metadata about its sales and claims: stored and shown, but never interpreted."""

from typing import Any

import msgspec

from seckill.domain.goods import METADATA_BYTES_MAX
from seckill.web.problems import invalid


def canonical_metadata(metadata: dict[str, Any]) -> str:
    """Returns the same text for the same content, whatever the order and the spaces in which it was sent."""
    text = msgspec.json.encode(metadata, order="sorted")
    if len(text) > METADATA_BYTES_MAX:
        raise invalid("metadata", f"must have at most {METADATA_BYTES_MAX} bytes as JSON, and has {len(text)}")
    return text.decode()
