"""A draw whose beacon comes from an address: a stand-in of drand's API on loopback, which answers, is away, lies, sends
somebody elsewhere or too much."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from seckill.backends.door import beacon_reader
from seckill.backends.door.beacon_reader import HttpBeacon
from seckill.bootstrap.engine import Engine
from seckill.client.draw_check import BeaconOrigin, Draw, Witness, check
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.line.beacons import ALARM_AFTER, Beacons
from seckill.engine.line.drawing import Drawing
from seckill.ports.door import ServiceAway
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, make_node
from tests.api.test_line import begin, joined, later, look

GENESIS_S, PERIOD_S, WITHIN_S = 1_700_000_000, 30, 600
VALUE = "ab" * 32


def right(number: int) -> tuple[int, bytes, str]:
    return 200, json.dumps({"round": number, "randomness": VALUE, "signature": "00"}).encode(), ""


@dataclass
class Source:
    """`say` returns the answer for the requested number: status, body and more headers; None: no answer."""

    say: Callable[[int], tuple[int, bytes, str] | None] = right
    url: str = ""
    asked: list[int] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(int(head.split()[1].rsplit("/", 1)[1]))
        said = self.say(self.asked[-1])
        try:
            if said is None:
                await reader.read()  # until the other side gives up
                return
            status, body, more = said
            head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def opened(source: Source) -> AsyncIterator[Source]:
    server = await asyncio.start_server(source.answer, "127.0.0.1", 0)
    source.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/public/{{round}}"
    try:
        yield source
    finally:
        server.close()


@pytest.fixture
async def source() -> AsyncIterator[Source]:
    async with opened(Source()) as source:
        yield source


@pytest.fixture
def settings(settings: Settings, source: Source) -> Settings:
    return replace(
        settings,
        beacon_url=source.url,
        beacon_genesis_s=GENESIS_S,
        beacon_period_s=PERIOD_S,
        beacon_within_s=WITHIN_S,
    )


class Told(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.alarms: list[str] = []

    async def raise_(self, what: str, facts: Any, *, lasting: bool = False) -> None:
        self.alarms.append(what)

    async def resolve(self, what: str, facts: Any, *, ends: str = "") -> None:
        self.alarms.append(f"over: {ends}")


class Clock:
    """A keeper whose clock for requests is ahead of all others, and that need not wait between its tries."""

    def __init__(self, engine: Engine) -> None:
        self.ahead_s, self.tries = 0.0, 0
        self.alarm = Told()
        lines = engine.ledger.lines
        beacons = Beacons(lines, HttpBeacon(), self.alarm, lambda: 1000 * (time.time() + self.ahead_s), self.monotonic)
        self.drawing = Drawing(lines, engine.entry_ids, beacons)

    def monotonic(self) -> float:
        self.tries += 1
        return 1000.0 * self.tries


async def closed(node: Node, clock: Clock, **facts: Any) -> dict[str, Any]:
    sale = await node.create(units=1, order="draw", beacon=True, **later(), **facts)
    for user in ("ann", "bob", "cid", "dan"):
        await joined(node, sale, user)
    await begin(node, sale)
    assert not await clock.drawing.step(), "closes the list, and publishes its hash"
    return sale


async def published(node: Node, sale: dict[str, Any]) -> dict[str, Any]:
    node.api.context.line.figures._known.clear()  # it is a second old at most
    found: dict[str, Any] = (await node.http.get(f"/v1/sales/{sale['id']}/draw")).json()
    return found


async def is_sound(node: Node, sale: dict[str, Any]) -> bool:
    """Checks a draw with the code that shares nothing with it."""
    draw = await published(node, sale)
    entries = (await node.http.get(f"/v1/sales/{sale['id']}/draw/entries")).json()["entries"]
    verdict = check(
        Draw(
            **{name: draw[name] for name in ("commitment", "list_hash", "seed")},
            beacon=draw["beacon"] or "",
            entries=entries,
            listed_ms=ms(draw["listed_at"]),
            source=BeaconOrigin(**draw["beacon_source"]),
            beacon_number=draw["beacon_round"],
            beacon_missed=draw["beacon_missed_at"] is not None,
        ),
        Witness(),
    )
    return not verdict.flaws


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


async def set_back(engine: Engine, seconds: int) -> None:
    """Makes it look as if the list had been published this long ago."""
    async with engine.ledger.database.writers.begin() as connection:  # type: ignore[attr-defined]
        await connection.exec_driver_sql(f"UPDATE round_lines SET listed_ms = listed_ms - {1000 * seconds}")


async def test_the_first_value_after_the_list_is_taken_and_nobody_chooses(
    node: Node, engine: Engine, source: Source
) -> None:
    clock = Clock(engine)
    sale = await node.create(units=1, order="draw", beacon=True, **later())
    announced = (await published(node, sale))["beacon_source"]
    assert announced == {"url": source.url, "genesis_s": GENESIS_S, "period_s": PERIOD_S, "within_s": WITHIN_S}
    entry = await joined(node, sale, "ann")
    await begin(node, sale)
    for _ in range(3):
        assert not await clock.drawing.step()
    assert source.asked == [], "nobody knows that value yet, so nobody is asked"
    by_hand = await node.http.patch(f"/v1/admin/sales/{sale['id']}/line", json={"beacon": "mine"}, headers=OPERATOR)
    assert (by_hand.status_code, by_hand.json()["code"]) == (409, "not_possible")
    clock.ahead_s = 60
    while not await clock.drawing.step():
        pass
    draw = await published(node, sale)
    due = (ms(draw["listed_at"]) + 15_000 - 1000 * GENESIS_S) // (1000 * PERIOD_S) + 2
    assert (draw["beacon"], draw["beacon_round"], draw["beacon_missed_at"]) == (VALUE, due, None)
    assert source.asked == [due]
    assert GENESIS_S + (due - 1) * PERIOD_S > ms(draw["listed_at"]) / 1000 + 15 > ms(draw["closed_at"]) / 1000
    assert await is_sound(node, sale)
    assert (await look(node, entry, "ann"))["place"] == 1
    shown = (await node.http.get(f"/v1/admin/sales/{sale['id']}/line", headers=OPERATOR)).json()
    assert (shown["fetches_beacon"], shown["beacon"]) == (True, VALUE)
    told = (await node.http.get("/v1/admin/events?types=line.drawn", headers=OPERATOR)).json()["events"]
    assert (told[0]["data"]["beacon"], told[0]["data"]["beacon_round"]) == (VALUE, due)


async def test_a_source_that_does_not_answer_is_asked_again_told_of_and_given_up_in_the_time_that_was_announced(
    node: Node, engine: Engine, source: Source
) -> None:
    source.say = lambda _: (503, b"{}", "")
    clock = Clock(engine)
    sale = await closed(node, clock)
    clock.ahead_s = 60
    for tries in range(1, ALARM_AFTER + 2):
        assert not await clock.drawing.step()
        assert len(source.asked) == tries
        assert len(clock.alarm.alarms) == (tries >= ALARM_AFTER), "once, when it is more than a hiccup"
    await set_back(engine, WITHIN_S - 60)
    assert not await clock.drawing.step()
    assert (await published(node, sale))["beacon_missed_at"] is None, (
        "not before the time is over, by the ledger's clock"
    )
    await set_back(engine, 120)
    assert not await clock.drawing.step()
    assert len(clock.alarm.alarms) == 3, "what lasted is over, and what came of it is told"
    source.say = right
    assert await clock.drawing.step() == 1
    draw = await published(node, sale)
    assert (draw["beacon"], draw["beacon_round"]) == (None, None), "what was decided stays"
    assert draw["beacon_missed_at"] is not None
    assert await is_sound(node, sale)


def _other_number(number: int) -> tuple[int, bytes, str]:
    return right(number - 1)


def _elsewhere(_: int) -> tuple[int, bytes, str]:
    return 302, b"", "Location: http://127.0.0.1:1/secret\r\n"


def _too_much(number: int) -> tuple[int, bytes, str]:
    return 200, right(number)[1][:-1] + b" " * 70_000 + b"}", ""


def _no_value(number: int) -> tuple[int, bytes, str]:
    return 200, json.dumps({"round": number, "randomness": "a:b\n"}).encode(), ""


@pytest.mark.parametrize(
    "say", [_other_number, _elsewhere, _too_much, _no_value, lambda _: (200, b"<html>", ""), lambda _: None]
)
async def test_what_is_not_the_value_is_no_answer(
    source: Source, say: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beacon_reader, "WITHIN_S", 0.5)
    source.say = say
    with pytest.raises(ServiceAway):
        await HttpBeacon().value(source.url.replace("{round}", "77"), 77)
    assert source.asked == [77], "and nowhere else"
    source.say = right
    assert await HttpBeacon().value(source.url.replace("{round}", "77"), 77) == VALUE
    for address in ("file:///etc/hostname", "data:,%7B%7D"):
        with pytest.raises(ServiceAway, match="no address of HTTP"):
            await HttpBeacon().value(address, 77)


async def test_two_keepers_take_the_same_and_what_is_noted_first_stays(
    node: Node, engine: Engine, source: Source
) -> None:
    clock = Clock(engine)
    sale = await closed(node, clock)
    lines, round_id = engine.ledger.lines, int(sale["round"])
    line = await lines.line(round_id)
    assert line is not None
    assert line.beacon_from is not None
    assert line.listed_ms is not None
    number = line.beacon_from.number_after(line.listed_ms)
    await lines.note_beacon(round_id, number + 1, "cd" * 32)
    assert not await lines.miss_beacon(round_id)
    assert (await published(node, sale))["beacon"] is None, "only the one that it has to take"
    await lines.note_beacon(round_id, number, VALUE)
    await lines.note_beacon(round_id, number, "cd" * 32)
    await set_back(engine, 10 * WITHIN_S)
    assert not await lines.miss_beacon(round_id)
    assert await Clock(engine).drawing.step() + await clock.drawing.step() == 1
    draw = await published(node, sale)
    assert (draw["beacon"], draw["beacon_missed_at"]) == (VALUE, None)


async def test_a_list_that_an_earlier_version_has_closed_is_drawn_as_well(
    node: Node, engine: Engine, source: Source
) -> None:
    clock = Clock(engine)
    sale = await closed(node, clock)
    async with engine.ledger.database.writers.begin() as connection:  # type: ignore[attr-defined]
        await connection.exec_driver_sql("UPDATE round_lines SET listed_ms = NULL")
    clock.ahead_s = 60
    while not await clock.drawing.step():
        pass
    assert (await published(node, sale))["beacon"] == VALUE
    assert await is_sound(node, sale)


async def test_without_an_address_an_operator_gives_it(settings: Settings, engine: Engine) -> None:
    node = await make_node(replace(settings, beacon_url=""), engine)
    clock = Clock(engine)
    sale = await closed(node, clock)
    clock.ahead_s = 3600
    assert not await clock.drawing.step()
    given = await node.http.patch(f"/v1/admin/sales/{sale['id']}/line", json={"beacon": "mine"}, headers=OPERATOR)
    assert given.status_code == 200, given.text
    assert await clock.drawing.step() == 1
    assert (await published(node, sale))["beacon_source"] is None
    await node.http.aclose()
