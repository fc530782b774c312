"""What a buyer looks at, as far as it matters: some providers have another page for phones."""

from collections.abc import Mapping


def is_on_phone(headers: Mapping[str, str]) -> bool:
    """Header names in lower case. Browsers that say it in a header of its own are believed; others have it in their
    name."""
    hint = headers.get("sec-ch-ua-mobile")
    return hint == "?1" if hint is not None else "Mobi" in headers.get("user-agent", "")
