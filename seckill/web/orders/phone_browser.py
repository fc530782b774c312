"""Tells phones from other devices, because some providers have another page for phones."""

from collections.abc import Mapping


def is_on_phone(headers: Mapping[str, str]) -> bool:
    """Header names are in lower case. Some browsers say it in a header of its own, others in their name."""
    hint = headers.get("sec-ch-ua-mobile")
    return hint == "?1" if hint is not None else "Mobi" in headers.get("user-agent", "")
