"""How long a buyer who has let orders lapse, cancelled or not paid in time, waits before buying again. Pure.

`cools_until` in `admit.lua` is the same rule inside the gate; random histories are run through both."""

from seckill.domain.line import OF_LINE

# No buyer waits longer than this, whatever it begins with; a sale may be over by then.
COOL_DOWN_S_MAX = 3600
# More would pass that wait whatever it begins with.
DOUBLINGS_MAX = 12
# What the request id of a claim for money that came late begins with. It is paid for, so it need not wait; nor need
# somebody who has waited in line.
LATE = "late-"
_NEVER_COOLS = (LATE, OF_LINE)


def cools_until_ms(cool_down_s: int, lapses: int, lapsed_ms: int, request_id: str = "") -> int:
    """When the buyer of so many lapsed orders, the last of which ended then, may buy again: each of them doubled the
    wait. 0: always."""
    if not (cool_down_s and lapses) or request_id.startswith(_NEVER_COOLS):
        return 0
    return lapsed_ms + 1000 * min(cool_down_s << min(lapses - 1, DOUBLINGS_MAX), COOL_DOWN_S_MAX)
