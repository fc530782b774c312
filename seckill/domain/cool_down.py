"""How long a buyer who has let orders lapse, that is cancelled them or not paid in time, waits before buying again.
Pure.

`cools_until` in `admit.lua` is the same rule inside the gate; random histories are run through both."""

from seckill.domain.line import OF_LINE

# No buyer waits longer than this, whatever the first wait; a sale may be over by then.
COOL_DOWN_S_MAX = 3600
# More doublings would exceed that maximum, whatever the first wait.
DOUBLINGS_MAX = 12
# The prefix of request ids of claims for late money. They are paid for and need not wait, nor does a buyer who has
# waited in line.
LATE = "late-"
_NEVER_COOLS = (LATE, OF_LINE)


def cools_until_ms(cool_down_s: int, lapses: int, lapsed_ms: int, request_id: str = "") -> int:
    """Returns when a buyer with this many lapsed orders, the last of which ended then, may buy again: each lapse has
    doubled the wait. 0: always."""
    if not (cool_down_s and lapses) or request_id.startswith(_NEVER_COOLS):
        return 0
    return lapsed_ms + 1000 * min(cool_down_s << min(lapses - 1, DOUBLINGS_MAX), COOL_DOWN_S_MAX)
