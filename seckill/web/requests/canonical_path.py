"""Every address has one spelling. Any other spelling leads to nothing.

A proxy, its rules and this server must understand a path in the same way; otherwise one serves a request that another
forbids. Hardly any address of ours needs an escaped ASCII character, two slashes in a row, or `..`.
"""

import re

_OTHERWISE = re.compile(rb"%(?![89A-F][0-9A-F])|//|/\.\.?(?:/|$)|\\")


# The exception is a voucher's code, which the shop chooses and which may contain any character.
_CODE = re.compile(rb"/v1/admin/vouchers/((?:[\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)(?:/redeem)?", re.ASCII)
_DOTS = re.compile(rb"(?:\.|%2[Ee]){1,2}")


def is_canonical(raw_path: bytes) -> bool:
    """Whether the path, given without the query, has its one spelling."""
    return _OTHERWISE.search(raw_path) is None or _has_code(raw_path)


def _has_code(raw_path: bytes) -> bool:
    found = _CODE.fullmatch(raw_path)
    return found is not None and _DOTS.fullmatch(found[1]) is None
