"""When the windows of a repeating sale begin. Pure: instants come in and go out, in milliseconds UTC.

"daily" is the same time by the clock on the wall, once on each day of the calendar in the sale's zone:

- a time that the clocks pass over (02:30, when 02:00 becomes 03:00) is the moment at which they jump;
- a time that comes twice counts the first time;
- a day that the zone skips altogether (Apia had no 30 December 2011) has no window.

Everything else is cron with five fields. With fixed hours and minutes, a skipped or repeated time is treated as above.
With a `*` in hours or minutes it follows the clock: an hour that comes twice has its windows twice.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

DAILY = "daily"
REPEAT_LENGTH_MAX = 64
ZONE_LENGTH_MAX = 64
# How far ahead windows are checked for overlaps. After that, a window that would overlap is left out.
CHECKED_MS = 5 * 366 * 86_400_000
CHECKED_MAX = 500

# What each of the five fields may contain, by its name in errors.
_FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, as far as the months have them, and L is the last",
    "month": "1 to 12, or JAN to DEC",
    "day-of-week": "0 to 7, or SUN to SAT",
}
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
# Files in the system's folder of zones that other machines may not know as zones.
_NO_ZONES = {"localtime", "posixrules", "Factory"}


class BadRecurrence(ValueError):
    """`field` is the name in the announcement."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    repeat: str  # "daily", or cron with five fields
    timezone: str
    begins_ms: int  # of the window that was announced; no window begins earlier
    window_ms: int  # the length of every window, as time passes, not as clocks show it

    def after(self, ms: int) -> Iterator[int]:
        """Yields the beginnings of windows later than this instant. Raises BadRecurrence at the first one."""
        ms = max(ms, self.begins_ms - 1)
        zone = zone_of(self.timezone)
        found = self._daily(ms, zone) if self.repeat == DAILY else self._cron(ms, zone)
        for begins_ms in found:
            # In an hour that comes twice, a fixed time may resolve to its first occurrence, which is past.
            if begins_ms > ms:
                yield begins_ms
                ms = begins_ms

    def next_not_over(self, after_ms: int, now_ms: int) -> int | None:
        """The first window later than `after_ms` that is not over yet."""
        return next(self.after(max(after_ms, now_ms - self.window_ms)), None)

    def check(self) -> None:
        """Raises BadRecurrence if the recurrence is impossible."""
        zone_of(self.timezone)
        if len(self.repeat) > REPEAT_LENGTH_MAX:
            raise BadRecurrence("repeat", f"must not be longer than {REPEAT_LENGTH_MAX} characters")
        first_ms = next(self.after(self.begins_ms - 1), None)
        if first_ms is None:
            raise BadRecurrence("repeat", "never comes: no day of the calendar is like that")
        near = takewhile(lambda ms: ms < first_ms + CHECKED_MS, self.after(first_ms))
        for earlier_ms, later_ms in pairwise([first_ms, *islice(near, CHECKED_MAX)]):
            if later_ms - earlier_ms < self.window_ms:
                when = f"{datetime.fromtimestamp(later_ms / 1000, UTC):%Y-%m-%d %H:%M}Z"
                raise BadRecurrence("ends_at", f"is later than the next beginning ({when}): windows must not overlap")

    def _daily(self, after_ms: int, zone: ZoneInfo) -> Iterator[int]:
        first = _local(self.begins_ms, zone)
        yield self.begins_ms
        day = max(first.date() + _DAY, _local(after_ms, zone).date() - _DAY)
        while True:
            instant = _on_day(day, first.time(), zone)
            if instant is not None:
                yield _to_ms(instant)
            day += _DAY

    def _cron(self, after_ms: int, zone: ZoneInfo) -> Iterator[int]:
        if len(self.repeat.split()) != len(_FIELDS):
            raise BadRecurrence(
                "repeat", "must be daily, or cron with five fields: minute hour day-of-month month day-of-week"
            )
        try:
            times = CronSim(self.repeat, _local(after_ms, zone))
        except CronSimError as error:
            raise BadRecurrence("repeat", _wrong_field(self.repeat, str(error))) from None
        return (_to_ms(instant) for instant in times)


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones() - _NO_ZONES)


def zone_of(name: str) -> ZoneInfo:
    # Checked against the list, so that no name is ever taken for a path.
    if name not in _zones():
        raise BadRecurrence("timezone", f'"{name}" is not a time zone; write it like Asia/Shanghai')
    return ZoneInfo(name)


def _wrong_field(repeat: str, error: str) -> str:
    for text, (name, range_) in zip(repeat.split(), _FIELDS.items(), strict=True):
        if error == f"Bad {name}":
            return f'its {name} cannot be "{text}"; it goes from {range_}'
    return f"is not a cron schedule that can ever be due ({error})"


def _local(ms: int, zone: ZoneInfo) -> datetime:
    return (datetime.fromtimestamp(ms // 1000, UTC) + timedelta(milliseconds=ms % 1000)).astimezone(zone)


def _to_ms(instant: datetime) -> int:
    return (instant - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def _on_day(day: date, at: time, zone: ZoneInfo) -> datetime | None:
    """Returns that time on that day, or None if the zone skips the whole day."""
    wanted = datetime.combine(day, at.replace(fold=0), tzinfo=zone)
    if wanted.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wanted.replace(tzinfo=None):
        return wanted
    jump = _jump(wanted)
    return jump if day in (jump.astimezone(zone).date(), (jump - _SECOND).astimezone(zone).date()) else None


def _jump(imaginary: datetime) -> datetime:
    """Returns the instant at which the clocks jump over this time. It lies between the time by the later offset and the
    time by the earlier one."""
    zone = imaginary.tzinfo
    earliest = int(imaginary.replace(fold=1).timestamp())
    latest = int(imaginary.replace(fold=0).timestamp()) + 1

    def offset(second: int) -> timedelta | None:
        return datetime.fromtimestamp(second, UTC).astimezone(zone).utcoffset()

    before = offset(earliest)
    seconds = range(earliest, latest + 1)
    return datetime.fromtimestamp(seconds[bisect_left(seconds, True, key=lambda s: offset(s) != before)], UTC)
