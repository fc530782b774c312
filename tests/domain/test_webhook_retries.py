"""How long a delivery is tried."""

from seckill.domain.webhook_retries import FAILURES_MAX, GIVE_UP_S, RETRY_S_MAX, RETRY_S_MIN, rest_s, retry_after_s


def test_twice_as_long_each_time_up_to_an_hour_with_jitter() -> None:
    waits = [retry_after_s(tries, 0.5) for tries in range(1, 100)]
    assert waits[:4] == [RETRY_S_MIN, 2 * RETRY_S_MIN, 4 * RETRY_S_MIN, 8 * RETRY_S_MIN]
    assert waits[-1] == RETRY_S_MAX == 3600
    assert waits == sorted(waits)
    assert retry_after_s(1, 0.0) < retry_after_s(1, 1.0) < 2 * retry_after_s(1, 0.0)
    assert GIVE_UP_S == 3 * 86_400
    assert rest_s(FAILURES_MAX, 0.5) == RETRY_S_MIN
