"""Every address has one spelling; under all others there is nothing.

A proxy, a rule in it and this server must mean the same by a path, or one serves a request that another forbids.
Nothing that we serve needs an escape for a character of ASCII, two slashes in a row, or a way back up.
"""

import re

_OTHERWISE = re.compile(rb"%(?![89A-F][0-9A-F])|//|/\.\.?(?:/|$)|\\")


def is_canonical(raw_path: bytes) -> bool:
    """Without the query."""
    return _OTHERWISE.search(raw_path) is None
