"""Decides how long the client goes on trying, how long it pauses between two tries, and after which answers it tries
again."""

import random
from typing import Any

from seckill.client.errors import ClientError, NoAnswer, Refused, Unavailable
from seckill.client.requests import Request

# The time for one try.
ANSWER_WITHIN_S = 10.0
# The time for all tries together.
REPEAT_FOR_S = 15.0
# The pause between two tries if the API does not name one: it doubles each time, with jitter.
PAUSE_S_MIN = 0.2
PAUSE_S_MAX = 3.0
# After this many failed tries the pauses stop growing.
PAUSES_MAX = 5


def is_passing(error: ClientError, request: Request[Any]) -> bool:
    """Whether to repeat the request. With a key, that is also right when it is unknown what was done, or when the
    request was not looked at: an earlier try whose answer was lost may have taken effect."""
    if not request.repeatable:
        return False
    if request.key is not None and isinstance(error, Refused) and (error.status >= 500 or error.code == "rate_limited"):
        return True
    return isinstance(error, NoAnswer | Unavailable)


def pause_s(error: ClientError, tries: int) -> float:
    told_s = error.retry_after_s if isinstance(error, Refused) else None
    waits_s = min(PAUSE_S_MIN * 2**tries, PAUSE_S_MAX) if told_s is None else max(told_s, PAUSE_S_MIN)
    return waits_s * random.uniform(1.0, 1.5)  # noqa: S311 (jitter, not a secret)
