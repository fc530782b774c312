"""`Prefer: wait=S` (RFC 7240): how long a client would rather wait for the result than be told to ask again.

A preference is only a wish. One that cannot be understood is ignored, as the RFC demands. One that exceeds the maximum
is reduced to it, and `Preference-Applied` says so.
"""

import re

from seckill.engine.orders.buyer_orders import WAIT_S_MAX
from seckill.web.requests.client_address import Headers

HEADER = b"prefer"
_PREFERENCES = re.compile(rb'(?:[^,"]|"(?:\\.|[^"\\])*+"?+)++')
_WAIT = re.compile(rb'\s*wait\s*(?:=\s*"?([0-9]*)"?\s*)?(?:;.*)?', re.IGNORECASE | re.DOTALL)


def preferred_wait_s(headers: Headers) -> int | None:
    """Returns None if the client has no such preference, or none that can be understood."""
    given = b",".join(value for name, value in headers if name == HEADER)
    for preference in _PREFERENCES.findall(given):
        named = preference.partition(b"=")[0].partition(b";")[0]
        if named.strip().lower() == b"wait":  # of several, the first counts
            return _seconds(_WAIT.fullmatch(preference))
    return None


def _seconds(found: re.Match[bytes] | None) -> int | None:
    digits = (found and found[1]) or b""
    if not digits:
        return None
    most = int(WAIT_S_MAX)
    significant = digits.lstrip(b"0") or b"0"
    return most if len(significant) > len(str(most)) else min(int(significant), most)


def applied(wait_s: int) -> bytes:
    return b"preference-applied: wait=%d\r\n" % wait_s
