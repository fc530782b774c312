"""Compares a server's clock with this machine's."""

from seckill.operations.doctor.examination import Health

# One server's clock sets a payment window or an order's age, and another server's clock judges it.
SKEW_MS_MAX = 2000


def check_clock(health: Health, whose: str, there_ms: int, before_ms: int, after_ms: int) -> None:
    """`before_ms` and `after_ms`: this machine's time when it asked and when the answer came."""
    if before_ms - SKEW_MS_MAX <= there_ms <= after_ms + SKEW_MS_MAX:
        return
    apart_s = abs(there_ms - (before_ms + after_ms) // 2) / 1000
    way = "ahead of" if there_ms > after_ms else "behind"
    health.mend.append(
        f"The clock of {whose} is {apart_s:.1f} s {way} this machine's: let both follow the same time (NTP)."
    )
