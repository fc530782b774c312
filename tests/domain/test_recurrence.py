"""When the windows of a repeating sale begin, over everything that clocks do."""

import re
from collections import Counter
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.recurrence import DAILY, REPEAT_LENGTH_MAX, BadRecurrence, Recurrence

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# Clocks that change at night and at midnight, by half an hour, in the south, often, or never; two that skipped a day.
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Nuuk",
    "Asia/Shanghai",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "UTC",
]


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def make(repeat: str, zone: str, begins: str, window_ms: int = HOUR_MS) -> Recurrence:
    return Recurrence(repeat=repeat, timezone=zone, begins_ms=ms(begins), window_ms=window_ms)


def shown(recurrence: Recurrence, count: int, after_ms: int = 0) -> list[str]:
    zone = ZoneInfo(recurrence.timezone)
    found = islice(recurrence.after(after_ms), count)
    return [f"{datetime.fromtimestamp(begins_ms / 1000, zone):%m-%d %H:%M%z}" for begins_ms in found]


@pytest.mark.parametrize("repeat", [DAILY, "30 2 * * *"])
def test_half_past_two_when_berlin_changes_its_clocks(repeat: str) -> None:
    spring = make(repeat, "Europe/Berlin", "2027-03-27T02:30:00+01:00")
    assert shown(spring, 3) == ["03-27 02:30+0100", "03-28 03:00+0200", "03-29 02:30+0200"]
    autumn = make(repeat, "Europe/Berlin", "2026-10-24T02:30:00+02:00")
    assert shown(autumn, 3) == ["10-24 02:30+0200", "10-25 02:30+0200", "10-26 02:30+0100"]


def test_asked_in_the_hour_that_comes_twice() -> None:
    """Cron by fixed times looks back to the first of the two; it must not be given out again."""
    for repeat in (DAILY, "30 2 * * *"):
        autumn = make(repeat, "Europe/Berlin", "2026-10-24T02:30:00+02:00")
        assert shown(autumn, 1, ms("2026-10-25T02:15:00+01:00")) == ["10-26 02:30+0100"]


def test_midnight_where_clocks_change_at_midnight() -> None:
    santiago = make(DAILY, "America/Santiago", "2026-09-05T00:00:00-04:00")
    assert shown(santiago, 3) == ["09-05 00:00-0400", "09-06 01:00-0300", "09-07 00:00-0300"]
    beirut = make(DAILY, "Asia/Beirut", "2026-03-28T00:30:00+02:00")
    assert shown(beirut, 3) == ["03-28 00:30+0200", "03-29 01:00+0300", "03-30 00:30+0300"]


def test_a_day_that_the_zone_skips_has_no_window() -> None:
    apia = make(DAILY, "Pacific/Apia", "2011-12-29T10:00:00-10:00")
    assert shown(apia, 3) == ["12-29 10:00-1000", "12-31 10:00+1400", "01-01 10:00+1400"]


def test_the_first_window_of_cron_is_not_before_the_announced_beginning() -> None:
    noon = make("0 12 * * *", "Asia/Shanghai", "2026-11-20T10:07:00+08:00")
    assert shown(noon, 2) == ["11-20 12:00+0800", "11-21 12:00+0800"]
    on_time = make("0 12 * * *", "Asia/Shanghai", "2026-11-20T12:00:00+08:00")
    assert shown(on_time, 1) == ["11-20 12:00+0800"]


def test_the_first_window_that_is_not_over() -> None:
    daily = make(DAILY, "UTC", "2026-01-01T10:00:00Z")
    before_ms = daily.begins_ms - 1
    assert daily.next_not_over(before_ms, ms("2026-05-01T10:59:59Z")) == ms("2026-05-01T10:00:00Z")
    assert daily.next_not_over(before_ms, ms("2026-05-01T11:00:00Z")) == ms("2026-05-02T10:00:00Z")
    assert daily.next_not_over(ms("2026-05-02T10:00:00Z"), ms("2026-05-01T11:00:00Z")) == ms("2026-05-03T10:00:00Z")


def calendar_days(zone: ZoneInfo, begins_ms: int, ends_ms: int) -> set[date]:
    """All days that some quarter of an hour belongs to."""
    quarter = 900_000
    return {
        datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).date()
        for at_ms in range(begins_ms, ends_ms, quarter)
    }


@given(
    zone=st.sampled_from(ZONES),
    begins=st.datetimes(datetime(1993, 1, 1), datetime(2040, 1, 1)),  # noqa: DTZ001 (drawn without a zone)
    days=st.integers(1, 400),
)
def test_every_day_of_the_calendar_has_one_window(zone: str, begins: datetime, days: int) -> None:
    begins_ms = int(begins.replace(tzinfo=UTC, microsecond=0).timestamp() * 1000)
    ends_ms = begins_ms + days * DAY_MS
    here = ZoneInfo(zone)
    daily = Recurrence(repeat=DAILY, timezone=zone, begins_ms=begins_ms, window_ms=1)
    found = list(takewhile(lambda at_ms: at_ms < ends_ms, daily.after(0)))
    assert found[0] == begins_ms
    assert all(earlier < later for earlier, later in pairwise(found))
    per_day = Counter(datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(here).date() for at_ms in found)
    # The last day may end before its time has come.
    last = datetime.fromtimestamp(ends_ms / 1000, UTC).astimezone(here).date()
    expected = {day for day in calendar_days(here, begins_ms, ends_ms) if day < last}
    missing = expected - set(per_day)
    assert not {day for day in missing if not _passed_over_into_the_next(here, begins_ms, day)}, missing
    assert max(per_day.values()) == 1 or missing


def _passed_over_into_the_next(zone: ZoneInfo, begins_ms: int, day: date) -> bool:
    """The clocks jump over midnight and over the time wanted: then its window begins as the next day does."""
    at = datetime.fromtimestamp(begins_ms / 1000, UTC).astimezone(zone).time()
    wanted = datetime.combine(day, at, tzinfo=zone).replace(fold=0)
    return wanted.astimezone(UTC).astimezone(zone).date() != day


@given(
    zone=st.sampled_from(ZONES),
    repeat=st.sampled_from(["30 2 * * *", "0 0 * * *", "*/20 * * * *", "15 0-3 * * *", "0 12 L * *", "0 0 29 2 *"]),
    begins_ms=st.integers(ms("2024-01-01T00:00:00Z"), ms("2030-01-01T00:00:00Z")),
    later_ms=st.integers(0, 400 * DAY_MS),
)
def test_it_does_not_matter_from_when_one_asks(zone: str, repeat: str, begins_ms: int, later_ms: int) -> None:
    """Two keepers that ask at different times name the same instants, in the same order."""
    cron = Recurrence(repeat=repeat, timezone=zone, begins_ms=begins_ms, window_ms=1)
    all_of_them = list(islice(cron.after(0), 50))
    assert all(earlier < later for earlier, later in pairwise([begins_ms - 1, *all_of_them]))
    after_ms = begins_ms + later_ms
    expected = [at_ms for at_ms in all_of_them if at_ms > after_ms][:5]
    assert list(islice(cron.after(after_ms), len(expected))) == expected


@given(repeat=st.text("0123456789*/,-#LWMONSUN ", max_size=20) | st.text(max_size=20), zone=st.text(max_size=20))
def test_whatever_is_written_is_understood_or_refused(repeat: str, zone: str) -> None:
    for recurrence in (
        Recurrence(repeat=repeat, timezone="Europe/Berlin", begins_ms=ms("2026-01-01T00:00:00Z"), window_ms=1),
        Recurrence(repeat=DAILY, timezone=zone, begins_ms=ms("2026-01-01T00:00:00Z"), window_ms=1),
    ):
        with suppress(BadRecurrence):
            recurrence.check()
            assert next(recurrence.after(0)) >= recurrence.begins_ms


@pytest.mark.parametrize(
    ("repeat", "zone", "window_ms", "field"),
    [
        ("0 0 30 2 *", "UTC", HOUR_MS, "repeat"),
        ("0 0 31 2,4 *", "UTC", HOUR_MS, "repeat"),
        ("0 0 0 12 * *", "UTC", HOUR_MS, "repeat"),
        ("x" * (REPEAT_LENGTH_MAX + 1), "UTC", HOUR_MS, "repeat"),
        (DAILY, "../../etc/passwd", HOUR_MS, "timezone"),
        (DAILY, "/etc/localtime", HOUR_MS, "timezone"),
        (DAILY, "europe/berlin", HOUR_MS, "timezone"),
        (DAILY, "UTC", DAY_MS + 1, "ends_at"),
        # 24 hours are too long where one day a year has 23, and that is months away.
        (DAILY, "Europe/Berlin", DAY_MS, "ends_at"),
        ("0 10 * * MON-FRI", "Asia/Shanghai", DAY_MS + 1, "ends_at"),
        ("0 0 1 1,12 *", "UTC", 32 * DAY_MS, "ends_at"),
    ],
)
def test_recurrences_that_cannot_be_are_refused(repeat: str, zone: str, window_ms: int, field: str) -> None:
    with pytest.raises(BadRecurrence) as refused:
        make(repeat, zone, "2026-11-15T00:30:00Z", window_ms).check()
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("repeat", "zone", "window_ms"),
    [
        (DAILY, "UTC", DAY_MS),
        (DAILY, "Europe/Berlin", DAY_MS - HOUR_MS),
        ("* * * * *", "Europe/Berlin", 60_000),
        ("0 10 * * MON-FRI", "Asia/Shanghai", DAY_MS),
        ("0 0 29 2 *", "UTC", 365 * DAY_MS),
        ("0 0 * 2 MON#5", "UTC", DAY_MS),
    ],
)
def test_recurrences_that_can_be(repeat: str, zone: str, window_ms: int) -> None:
    make(repeat, zone, "2026-11-15T00:30:00Z", window_ms).check()


def test_every_minute_for_a_year_is_asked_about_at_once() -> None:
    """After a long absence, the rule does not count one by one through what was missed."""
    cron = make("* * * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", 60_000)
    now_ms = ms("2026-01-01T00:00:30Z") + int(timedelta(days=3650).total_seconds() * 1000)
    assert cron.next_not_over(cron.begins_ms, now_ms) == now_ms - 30_000


@pytest.mark.parametrize(
    ("repeat", "sentence"),
    [
        ("61 * * * *", 'its minute cannot be "61"; it goes from 0 to 59'),
        ("0 25 * * *", 'its hour cannot be "25"; it goes from 0 to 23'),
        ("0 0 31 2 *", 'its day-of-month cannot be "31"; it goes from 1 to 31, as far as the months have them'),
        ("0 0 * FOO *", 'its month cannot be "FOO"; it goes from 1 to 12, or JAN to DEC'),
        ("0 0 * * 9", 'its day-of-week cannot be "9"; it goes from 0 to 7, or SUN to SAT'),
    ],
)
def test_a_field_that_cannot_be_is_named(repeat: str, sentence: str) -> None:
    wrong = Recurrence(repeat=repeat, timezone="UTC", begins_ms=ms("2026-01-01T00:00:00Z"), window_ms=1)
    with pytest.raises(BadRecurrence, match=re.escape(sentence)) as refused:
        wrong.check()
    assert refused.value.field == "repeat"
