"""Every address has one spelling; under all others there is nothing.

A proxy, a rule in it and this server must mean the same by a path, or one serves a request that another forbids.
Hardly anything that we serve needs an escape for a character of ASCII, two slashes in a row, or a way back up.
"""

import re

_OTHERWISE = re.compile(rb"%(?![89A-F][0-9A-F])|//|/\.\.?(?:/|$)|\\")


# But a voucher's code, which is a shop's own, may have any character in it.
_CODE = re.compile(rb"/v1/admin/vouchers/((?:[\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)(?:/redeem)?", re.ASCII)
_DOTS = re.compile(rb"(?:\.|%2[Ee]){1,2}")


def is_canonical(raw_path: bytes) -> bool:
    """Without the query."""
    return _OTHERWISE.search(raw_path) is None or _has_code(raw_path)


def _has_code(raw_path: bytes) -> bool:
    found = _CODE.fullmatch(raw_path)
    return found is not None and _DOTS.fullmatch(found[1]) is None
