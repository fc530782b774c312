"""What a shop says of its sales and claims, in its own words: kept, shown, and never read."""

from typing import Any

import msgspec

from seckill.domain.goods import METADATA_BYTES_MAX
from seckill.web.problems import invalid


def canonical_metadata(metadata: dict[str, Any]) -> str:
    """One text for one meaning, whatever the order and the spaces it was sent with."""
    text = msgspec.json.encode(metadata, order="sorted")
    if len(text) > METADATA_BYTES_MAX:
        raise invalid("metadata", f"must have at most {METADATA_BYTES_MAX} bytes as JSON, and has {len(text)}")
    return text.decode()
