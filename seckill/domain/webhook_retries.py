"""How often and for how long a delivery to a webhook is tried, and when an endpoint is left alone. Pure."""

from seckill.domain.webhook import DisabledBy

# One try, from asking what the name stands for to the end of the answer.
SEND_WITHIN_S = 15.0
# A delivery is tried again after this, doubled each time up to the maximum.
RETRY_S_MIN = 5.0
RETRY_S_MAX = 3600.0
# What was not delivered for so long is given up; an endpoint to which nothing was is disabled.
GIVE_UP_S = 3 * 86_400.0
# After so many failures with nothing in between, it is the endpoint that fails and not a delivery: it is left alone for
# a while, and then asked with one delivery at a time.
FAILURES_MAX = 5


def retry_after_s(tries: int, chance: float) -> float:
    """`chance`, from 0 to 1, spreads what failed together."""
    return min(RETRY_S_MIN * 2.0 ** min(tries - 1, 30), RETRY_S_MAX) * (0.75 + 0.5 * chance)


def rest_s(failures: int, chance: float) -> float:
    """How long an endpoint is left alone that has failed so often."""
    return retry_after_s(failures - FAILURES_MAX + 1, chance)


def reason_to_disable(failures: int, *, gone: bool) -> DisabledBy | None:
    """At once if the endpoint says that it is gone. Otherwise if nothing was delivered to it for `GIVE_UP_S`; but not
    for one failure after days in which nothing happened."""
    if gone:
        return DisabledBy.GONE
    return DisabledBy.FAILING if failures >= FAILURES_MAX else None
