"""Alarms, against receivers on loopback: those that behave badly hold up nothing else, and operators are told of
changes, not of the same again and again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from prometheus_client import REGISTRY

from seckill.backends.redis.board import RedisBoard
from seckill.engine.alarms import alarm, delivery, repeats
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from tests.patience import PATIENCE_S
from tests.receiver import Received, Receiver

# Without a limit on the whole answer it is waited for for ever: this ends the test that shows it.
ENOUGH_S = PATIENCE_S / 3


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "RETRY_S_MIN", 0.01)
    monkeypatch.setattr(delivery, "RETRY_S_MAX", 0.02)


@pytest.fixture
async def people() -> AsyncIterator[Receiver]:
    async with Receiver().running() as receiver:
        yield receiver


def told(people: Receiver) -> list[dict[str, Any]]:
    """Returns the messages without what every message has."""
    return [{k: v for k, v in each.event.items() if k not in ("at", "dedup_key")} for each in people.taken]


def counted(result: str) -> float:
    return REGISTRY.get_sample_value("seckill_alarms_total", {"result": result}) or 0.0


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


Hear = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(hear: Hear) -> AsyncIterator[Alarm]:
    """Yields an alarm whose receiver behaves like this. At the end, the receiver hangs up on all connections."""
    answering: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        answering.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await hear(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):  # it has hung up
                await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    tells = Alarm(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    try:
        yield tells
    finally:
        await tells.drain(PATIENCE_S)
        server.close()
        await asyncio.gather(*answering, return_exceptions=True)


async def test_an_alarm_and_its_end_say_where_it_stands_what_to_do(people: Receiver) -> None:
    tells = Alarm(people.url())
    await tells.raise_(AlarmCause.UNFIT, {"server": "a"}, lasting=True)
    await tells.resolve("it is as it must be again", {"server": "a"}, ends=AlarmCause.UNFIT)
    await tells.raise_("what no row is about", {})
    await tells.drain(PATIENCE_S)
    assert [each.get("runbook") for each in told(people)] == 2 * ["docs/operations.md#if-gate-unfit"] + [None]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


async def test_an_answer_that_is_not_http() -> None:
    """Such an answer counts as none: the message is sent again."""
    answers = [b"no HTTP here\r\n\r\n", OK]
    taken = asyncio.Event()

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0))
        if not answers:
            taken.set()

    async with listening(hear) as tells:
        await tells.raise_("something is wrong", {})
        await tells.drain(PATIENCE_S)
        assert taken.is_set()


async def test_a_receiver_that_redirects_has_not_taken_it(people: Receiver) -> None:
    """A client that follows gets a page to sign in, says that all is well, and the alarm is gone."""
    answers = [302, 200]

    async def answer(_: Received) -> int:
        return answers.pop(0)

    async with Receiver().running() as elsewhere:
        people.answer, people.reply_headers = answer, f"Location: {elsewhere.url()}\r\n"
        tells = Alarm(people.url())
        await tells.raise_("something is wrong", {})
        await tells.drain(PATIENCE_S)
        assert [each["alarm"] for each in told(people)] == ["something is wrong"]
        assert len(people.got) == 2
        assert elsewhere.connections == 0


async def test_an_answer_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte, each in time: only a limit on the whole ends it, and the next try finds a better receiver."""
    monkeypatch.setattr(delivery, "TIMEOUT_S", 0.5)
    begun, again, enough = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if begun.is_set():
            again.set()
            writer.write(OK)
            return
        begun.set()
        while not enough.is_set():
            writer.write(b"H")
            await asyncio.sleep(0.05)

    async with listening(hear) as tells:
        await tells.raise_("something is wrong", {})
        try:
            await asyncio.wait_for(again.wait(), ENOUGH_S)
        finally:
            enough.set()


async def test_nobody_waits_for_a_receiver_that_is_away_and_it_gets_everything_in_order(people: Receiver) -> None:
    back = asyncio.Event()

    async def away(_: Received) -> int:
        return 200 if back.is_set() else 503

    people.answer = away
    tells = Alarm(people.url())
    before = counted("delivered")
    for letter in (1, 2, 3):
        await tells.raise_("an order has failed for good", {"letter": letter})
    await people.until(lambda: len(people.got) >= 3)
    assert told(people) == []
    back.set()
    await tells.drain(PATIENCE_S)
    assert [each["letter"] for each in told(people)] == [1, 2, 3]
    assert counted("delivered") == before + 3


async def test_after_an_hour_a_message_is_given_up_and_counted(people: Receiver) -> None:
    clock = Clock()

    async def never(_: Received) -> int:
        return 500

    people.answer = never
    tells, before = Alarm(people.url(), clock), counted("given_up")
    await tells.raise_("something is wrong", {})
    await people.until(lambda: len(people.got) >= 2)
    clock.now_s = delivery.GIVE_UP_AFTER_S + 1
    await tells.drain(PATIENCE_S)
    assert counted("given_up") == before + 1


async def test_a_flood_is_bounded_and_what_was_left_out_is_counted(
    people: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "SAME_WAITING_MAX", 3)
    tells = Alarm(people.url())
    for letter in range(50):
        await tells.raise_("an order has failed for good", {"letter": letter})
    await tells.raise_("something else", {})
    await people.until(lambda: len(people.taken) == 4)
    assert [(each.get("letter"), each.get("more")) for each in told(people)] == [
        (0, None),
        (1, None),
        (2, 47),
        (None, None),
    ]


async def test_one_message_for_each_change_of_what_lasts(people: Receiver) -> None:
    tells = Alarm(people.url())
    unfit = {"server": "a", "reason": "no file"}
    for _ in range(3):
        await tells.raise_("unfit", unfit, lasting=True)
    await tells.raise_("unfit", unfit | {"reason": "keys may be evicted"}, lasting=True)
    await tells.resolve("fit again", {"server": "a"}, ends="unfit")
    await tells.raise_("unfit", unfit, lasting=True)
    await people.until(lambda: len(people.taken) == 4)
    assert told(people) == [
        {"alarm": "unfit", "server": "a", "reason": "no file"},
        {"alarm": "unfit", "server": "a", "reason": "keys may be evicted"},
        {"resolved": "fit again", "server": "a"},
        {"alarm": "unfit", "server": "a", "reason": "no file"},
    ]
    assert len({each.event["dedup_key"] for each in people.taken}) == 1, "a receiver can put them together"
    await tells.drain(PATIENCE_S)


async def test_two_keepers_give_the_same_trouble_the_same_key_and_others_another(people: Receiver) -> None:
    one, other = Alarm(people.url()), Alarm(people.url())
    await one.raise_("unfit", {"server": "a", "reason": "no file"}, lasting=True)
    await other.raise_("unfit", {"server": "a", "reason": "no file yet"}, lasting=True)
    await one.raise_("unfit", {"server": "b", "reason": "no file"}, lasting=True)
    await people.until(lambda: len(people.taken) == 3)
    keys = {(each.event["server"], each.event["dedup_key"]) for each in people.taken}
    assert len(keys) == len({key for _, key in keys}) == 2
    for each in (one, other):
        await each.drain(PATIENCE_S)


async def test_the_same_event_again_is_told_after_a_while_with_how_often(people: Receiver) -> None:
    clock = Clock()
    tells = Alarm(people.url(), clock)
    for _ in range(5):
        await tells.raise_("something stood there", {"key": "k"})
    clock.now_s = repeats.QUIET_S + 1
    await tells.raise_("something stood there", {"key": "k"})
    await people.until(lambda: len(people.taken) == 2)
    assert [each.get("again") for each in told(people)] == [None, 4]


async def test_what_lasts_is_told_again_until_it_is_over(people: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "REMIND_EVERY_S", 0.05)
    tells = Alarm(people.url())
    await tells.raise_("unfit", {"server": "a"}, lasting=True)
    await people.until(lambda: len(people.taken) >= 3)
    assert [each.get("reminder") for each in told(people)[:3]] == [None, True, True]
    await tells.resolve("fit again", {"server": "a"}, ends="unfit")
    await people.until(lambda: "resolved" in told(people)[-1])
    assert tells._reminders._reminding is not None
    await asyncio.wait_for(tells._reminders._reminding, PATIENCE_S)
    assert "resolved" in told(people)[-1], "nobody is reminded of what is over"
    await tells.drain(PATIENCE_S)


async def test_without_an_address_the_log_has_to_do() -> None:
    tells = Alarm("")
    await tells.raise_("unfit", {"server": "a"}, lasting=True)
    await tells.resolve("fit again", {"server": "a"}, ends="unfit")
    await tells.drain(0.0)


@pytest.fixture
async def boards(redis_url: str) -> AsyncIterator[tuple[RedisBoard, RedisBoard]]:
    one, other = RedisBoard(redis_url), RedisBoard(redis_url)
    yield one, other
    for each in (one, other):
        await each.close()


UNFIT = {"server": "a", "reason": "no file"}


async def test_one_of_the_keepers_that_see_the_same_tells_it(
    people: Receiver, boards: tuple[RedisBoard, RedisBoard]
) -> None:
    one, other = (Alarm(people.url(), board=board) for board in boards)
    before = counted("elsewhere")

    async def both_see(**changes: object) -> None:
        await asyncio.gather(*(each.raise_("unfit", UNFIT | changes, lasting=True) for each in (one, other)))

    async def both_see_the_end() -> None:
        await asyncio.gather(*(each.resolve("fit again", {"server": "a"}, ends="unfit") for each in (one, other)))

    for number, seen in enumerate((both_see, both_see_the_end, both_see, both_see_the_end), 1):
        await seen()
        await people.until(lambda number=number: len(people.taken) == number)  # type: ignore[misc]
        async with asyncio.timeout(PATIENCE_S):
            while counted("elsewhere") < before + number:
                await asyncio.sleep(0.01)
    await one.raise_("unfit", {"server": "b"}, lasting=True)
    for each in (one, other):
        await each.drain(PATIENCE_S)
    told_now = [("alarm" in each, each["server"]) for each in told(people)]
    assert told_now == [(True, "a"), (False, "a"), (True, "a"), (False, "a"), (True, "b")], "begun and ended twice"


async def test_control_without_a_board_each_tells_it(people: Receiver) -> None:
    for each in (Alarm(people.url()), Alarm(people.url())):
        await each.raise_("unfit", UNFIT, lasting=True)
        await each.drain(PATIENCE_S)
    assert len(people.taken) == 2


async def test_a_keeper_that_dies_in_its_turn_is_told_for(
    people: Receiver, boards: tuple[RedisBoard, RedisBoard], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TURN_S", 0.3)
    reached = asyncio.Event()

    async def never(_: Received) -> int:
        reached.set()
        return 500

    people.answer = never
    dying, other = (Alarm(people.url(), board=board) for board in boards)
    await dying.raise_("unfit", UNFIT, lasting=True)
    await asyncio.wait_for(reached.wait(), PATIENCE_S)
    await other.raise_("unfit", UNFIT, lasting=True)
    assert dying._post is not None
    assert dying._post._sending is not None
    dying._post._sending.cancel()  # as a process ends that is killed
    await asyncio.gather(dying._post._sending, return_exceptions=True)

    async def again(_: Received) -> int:
        return 200

    people.answer = again
    await people.until(lambda: len(people.taken) == 1)
    await other.drain(PATIENCE_S)


async def test_a_keeper_that_is_stopped_waits_for_nobody(
    people: Receiver, boards: tuple[RedisBoard, RedisBoard]
) -> None:
    """The process whose turn it is may be dead."""
    told_by = Alarm(people.url(), board=boards[0])
    await boards[1].turn_to_tell(alarm.key_of("unfit", UNFIT), "a message", "somebody else", 3600.0)
    await told_by.raise_("unfit", UNFIT, lasting=True)
    await told_by.drain(PATIENCE_S)
    assert len(people.taken) == 1


async def test_where_nobody_knows_whose_turn_it_is_everybody_tells(people: Receiver) -> None:
    """The trouble may be that very server."""
    for _ in range(2):
        board = RedisBoard("redis://127.0.0.1:1/0")
        tells = Alarm(people.url(), board=board)
        await tells.raise_("unfit", UNFIT, lasting=True)
        await tells.drain(PATIENCE_S)
        await board.close()
    assert len(people.taken) == 2
