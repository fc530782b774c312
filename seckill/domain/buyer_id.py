"""A buyer's id: the `sub` of a token, in one spelling. Pure.

Limits count by this text, so one person must not have two. Variations that a shop's service may produce by accident (a
space, a line break, the same digits in another width) are refused with the reason and never taken for another buyer.
Ids that the service spells differently on purpose, such as `7` and `07` or `Ann` and `ann`, are two buyers.
"""

import re
import unicodedata

BYTES_MAX = 128

# Most ids are like this and need no further checks.
_PLAIN = re.compile(r"[A-Za-z0-9._@|:+~=/-]{1,128}")
# Printable characters without width: fillers, joiners and variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


class BadBuyerId(ValueError):
    """The reason is the end of a sentence. It reveals at most one character of the text, by its code."""


def buyer_id(text: str) -> str:
    """Returns the one spelling (NFC) of a token's text. Raises BadBuyerId."""
    if _PLAIN.fullmatch(text):
        return text
    if not text:
        raise BadBuyerId("is empty")
    if text != text.strip():
        raise BadBuyerId("begins or ends with a space or a line break")
    for char in text:
        if not char.isprintable() or _INVISIBLE.match(char):
            raise BadBuyerId(f"has a character that cannot be seen: {_code(char)}")
    composed = unicodedata.normalize("NFC", text)
    for char in composed:
        if unicodedata.normalize("NFKC", char) != char:
            raise BadBuyerId(f"has another form of a common character: {_code(char)}")
    if len(composed.encode()) > BYTES_MAX:
        raise BadBuyerId(f"has more than {BYTES_MAX} bytes")
    return composed


def _code(char: str) -> str:
    name = unicodedata.name(char, "")
    return f"U+{ord(char):04X} ({name})" if name else f"U+{ord(char):04X}"
