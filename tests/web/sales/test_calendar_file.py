"""When a sale begins, as calendars read it."""

from datetime import UTC, datetime

import msgspec

from seckill.web.sales.calendar_file import LINE_BYTES_MAX, calendar_of
from seckill.web.schemas import Sale

NOW = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
ADDRESS = "https://sale.example.com/sales/7K3M"


def sale(**changes: object) -> Sale:
    facts = {
        "id": "7K3M",
        "title": "Kettle",
        "units": 10,
        "limit_per_buyer": 1,
        "price_cents": 9900,
        "currency": "CNY",
        "begins_at": "2026-11-18T02:00:00.000Z",
        "ends_at": "2026-11-18T03:00:00.000Z",
        "pay_within_s": 900,
        "cool_down_s": 0,
        "lanes": 1,
        "confirm": "gate",
        "state": "scheduled",
        "round": "1",
        "repeat": None,
        "timezone": "UTC",
        "next_rounds": [],
        "server_time": "",
        "images": [],
        "list_price_cents": None,
        "pass": "none",
        "order": "press",
        "waiting_list": False,
        "lined": False,
        "vouchers": False,
        "left_percent": None,
    }
    return msgspec.convert(facts | changes, Sale)


def lines(made: bytes) -> list[str]:
    """Unfolded, as a reader does."""
    return made.decode().replace("\r\n ", "").split("\r\n")


def test_it_is_an_event_with_an_alarm() -> None:
    found = lines(calendar_of(sale(), ADDRESS, NOW))
    assert found[0] == "BEGIN:VCALENDAR"
    assert {"DTSTART:20261118T020000Z", "DTEND:20261118T030000Z", "SUMMARY:Kettle", f"URL:{ADDRESS}"} <= set(found)
    assert {"BEGIN:VALARM", "TRIGGER:-PT5M", "DTSTAMP:20261101T080000Z"} <= set(found)
    assert found[-2:] == ["END:VCALENDAR", ""]


def test_rounds_to_come_are_events_of_their_own() -> None:
    daily = sale(repeat="daily", next_rounds=["2026-11-19T02:00:00.000Z", "2026-11-20T02:00:00.000Z"])
    found = lines(calendar_of(daily, ADDRESS, NOW))
    assert found.count("BEGIN:VEVENT") == 3
    assert "DTEND:20261120T030000Z" in found
    assert len({line for line in found if line.startswith("UID:")}) == 3
    assert lines(calendar_of(sale(state="ended"), ADDRESS, NOW)).count("BEGIN:VEVENT") == 0


def test_a_title_can_neither_end_a_line_nor_begin_a_field() -> None:
    made = calendar_of(sale(title="Tea; cups, \\ and a\u2028pot\nX-EVIL:1"), ADDRESS, NOW)
    assert "SUMMARY:Tea\\; cups\\, \\\\ and a\u2028pot\\nX-EVIL:1" in lines(made)


def test_no_line_is_longer_than_calendars_take_and_no_character_is_cut() -> None:
    title = "全新升级主动降噪真无线蓝牙耳机" * 12
    made = calendar_of(sale(title=title), None, NOW)
    assert all(len(line) <= LINE_BYTES_MAX for line in made.split(b"\r\n"))
    assert f"SUMMARY:{title}" in lines(made)
