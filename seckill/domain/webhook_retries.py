"""How often and how long deliveries to a webhook are tried, and when an endpoint is left alone. Pure."""

from seckill.domain.webhook import DisabledBy

# The time for one try, from resolving the name to the end of the answer.
SEND_WITHIN_S = 15.0
# A delivery is tried again after this, doubled each time up to the maximum.
RETRY_S_MIN = 5.0
RETRY_S_MAX = 3600.0
# A delivery that has failed for this long is given up; an endpoint to which nothing was delivered for this long is
# disabled.
GIVE_UP_S = 3 * 86_400.0
# After this many failures in a row, the endpoint is at fault and not a delivery: it is left alone for a while, and then
# tried with one delivery at a time.
FAILURES_MAX = 5


def retry_after_s(tries: int, chance: float) -> float:
    """`chance`, from 0 to 1, spreads retries of deliveries that failed together."""
    return min(RETRY_S_MIN * 2.0 ** min(tries - 1, 30), RETRY_S_MAX) * (0.75 + 0.5 * chance)


def rest_s(failures: int, chance: float) -> float:
    """Returns how long an endpoint that has failed this often is left alone."""
    return retry_after_s(failures - FAILURES_MAX + 1, chance)


def reason_to_disable(failures: int, *, gone: bool) -> DisabledBy | None:
    """Disables an endpoint at once if it says that it is gone. Otherwise disables it if nothing was delivered to it for
    `GIVE_UP_S`, but not for a single failure after days without events."""
    if gone:
        return DisabledBy.GONE
    return DisabledBy.FAILING if failures >= FAILURES_MAX else None
