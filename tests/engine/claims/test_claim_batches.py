"""Claims that arrive while a call is under way share the next one, and no buyer gets another's answer."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.engine.claims.claim_batches import Batcher
from seckill.engine.claims.writing_pace import LanePace
from seckill.errors import GateUnavailable, GateUnclear
from seckill.ports.gate import GateReply


class Calls:
    """A gate that answers when told to. Each answer carries the number in the user's name, so mix-ups show."""

    def __init__(self) -> None:
        self.batches: list[list[Claim]] = []
        self.go = asyncio.Semaphore(0)
        self.error: Exception | None = None

    async def __call__(self, claims: Sequence[Claim]) -> GateReply:
        self.batches.append(list(claims))
        await self.go.acquire()
        if self.error is not None:
            raise self.error
        return GateReply(now_ms=0, version=1, available=1, answers=[echo(claim) for claim in claims])


def echo(claim: Claim) -> Answer:
    return Answer(Outcome.ADMITTED, (Holding(OrderNumber(0, 0, int(claim.user)), 1, 1, "", True),))


def submit(batcher: Batcher, claim: Claim) -> asyncio.Future[Answer]:
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    batcher.submit(claim, answer)
    return answer


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_first_goes_alone_and_the_rest_share_the_next_call() -> None:
    calls = Calls()
    batcher = Batcher(calls, LanePace(), batch_max=4)
    tasks = [submit(batcher, Claim("0", 1))]
    await settle()
    tasks += [submit(batcher, Claim(str(i), 1)) for i in range(1, 8)]
    await settle()
    assert [len(batch) for batch in calls.batches] == [1]
    for _ in range(3):
        calls.go.release()
        await settle()
    assert [len(batch) for batch in calls.batches] == [1, 4, 3]
    assert await asyncio.gather(*tasks) == [echo(Claim(str(i), 1)) for i in range(8)]
    assert batcher.idle


class Telling:
    """A caller that notes how many calls had begun when it was told."""

    def __init__(self, calls: Calls, told: list[object]) -> None:
        self._calls = calls
        self._told = told

    def done(self) -> bool:
        return False

    def set_result(self, answer: Answer) -> None:
        self._told.append((answer.holdings[0].number.counter, len(self._calls.batches)))


async def test_the_gate_works_on_the_next_batch_while_the_callers_of_this_one_are_told() -> None:
    calls = Calls()
    told: list[object] = []
    batcher = Batcher(calls, LanePace(), lambda answers: told.append(len(answers)))
    batcher.submit(Claim("0", 1), Telling(calls, told))
    await settle()
    for user in ("1", "2"):
        batcher.submit(Claim(user, 1), Telling(calls, told))
    calls.go.release()
    await settle()
    assert told == [1, (0, 2)]
    calls.go.release()
    await settle()
    assert told[2:] == [2, (1, 2), (2, 2)], "what is prepared for a batch is still there when its callers are told"


async def test_callers_are_told_though_nothing_could_be_prepared_for_them() -> None:
    """Neither those of this batch nor those of the next one, whose call is under way, are left waiting."""

    def fail(*_: Sequence[Answer]) -> None:
        raise MemoryError

    calls = Calls()
    batcher = Batcher(calls, LanePace(), fail, fail)
    tasks = [submit(batcher, Claim("0", 1))]
    await settle()
    tasks += [submit(batcher, Claim(str(i), 1)) for i in (1, 2)]
    for _ in range(2):
        calls.go.release()
        await settle()
    assert [task.done() for task in tasks] == [True] * 3
    assert await asyncio.gather(*tasks) == [echo(Claim(str(i), 1)) for i in range(3)]
    assert batcher.idle


async def test_what_is_done_after_answers_finds_all_of_the_batch_told() -> None:
    told: list[int] = []
    calls = Calls()
    batcher = Batcher(calls, LanePace(), after_answers=lambda: told.append(sum(each.done() for each in waiting)))
    waiting = [asyncio.get_running_loop().create_future() for _ in range(5)]
    for number, each in enumerate(waiting):
        batcher.submit(Claim(str(number), 1), each)
    await settle()
    calls.go.release()
    await settle()
    assert told == [5]


async def test_a_buyer_who_gives_up_shifts_no_other_answer() -> None:
    """Each buyer gets the answer to their own claim, while others give up as they wait or are being asked (S27)."""
    calls = Calls()
    batcher = Batcher(calls, LanePace(), batch_max=50)
    chance = random.Random(1)
    for _ in range(100):
        tasks = {}
        for i in range(60):
            tasks[i] = submit(batcher, Claim(str(i), 1))
            if chance.random() < 0.2:
                await asyncio.sleep(0)
                list(tasks.values())[chance.randrange(len(tasks))].cancel()
            if chance.random() < 0.1:
                calls.go.release()
        for _ in range(60):
            calls.go.release()
        results = await asyncio.gather(*tasks.values(), return_exceptions=True)
        for i, result in zip(tasks, results, strict=True):
            assert isinstance(result, asyncio.CancelledError) or result == echo(Claim(str(i), 1))
        calls.go = asyncio.Semaphore(0)


async def test_a_claim_given_up_before_it_was_sent_is_never_sent() -> None:
    calls = Calls()
    batcher = Batcher(calls, LanePace())
    first = submit(batcher, Claim("1", 1))
    await settle()
    second = submit(batcher, Claim("2", 1))
    await settle()
    second.cancel()
    calls.go.release()
    await first
    await settle()
    assert [[claim.user for claim in batch] for batch in calls.batches] == [["1"]]


async def test_more_than_may_wait_are_refused_at_once() -> None:
    calls = Calls()
    batcher = Batcher(calls, LanePace(), waiting_max=3)
    tasks = [submit(batcher, Claim("0", 1))]
    await settle()
    tasks += [submit(batcher, Claim(str(i), 1)) for i in range(1, 4)]
    await settle()
    assert await submit(batcher, Claim("9", 1)) == Answer(Outcome.OVERLOADED)
    calls.go.release()
    calls.go.release()
    assert len(await asyncio.gather(*tasks)) == 4


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (GateUnclear("no answer"), Outcome.UNKNOWN),
        (GateUnavailable("refused"), Outcome.NOT_READY),
        (ValueError("not understood"), Outcome.UNKNOWN),
    ],
)
async def test_without_a_decision_nobody_hangs(error: Exception, sent: Outcome) -> None:
    calls = Calls()
    calls.error = error
    batcher = Batcher(calls, LanePace())
    under_way = submit(batcher, Claim("0", 1))
    await settle()
    waiting = submit(batcher, Claim("1", 1))
    await settle()
    calls.go.release()
    calls.go.release()
    assert (await under_way).outcome is sent
    assert (await waiting).outcome in (Outcome.NOT_READY, sent)
    calls.error = None
    calls.go.release()
    assert (await submit(batcher, Claim("2", 1))) == echo(Claim("2", 1))


async def test_a_lane_that_is_paced_sends_little_at_a_time_and_lets_few_wait() -> None:
    calls, pace = Calls(), LanePace()
    batcher = Batcher(calls, pace)
    pace.rate = 40.0
    first = submit(batcher, Claim("0", 1))
    calls.go.release()
    await first
    answers = [submit(batcher, Claim(str(i), 1)) for i in range(1, 100)]
    refused = [answer for answer in answers if answer.done()]
    assert len(refused) == 99 - 2 * 40
    assert {(await answer).outcome for answer in refused} == {Outcome.OVERLOADED}
    pace.rate = 4_000.0
    for _ in range(99):
        calls.go.release()
    assert (await asyncio.gather(*answers))[79] == echo(Claim("80", 1))
    assert [len(batch) for batch in calls.batches] == [1, 4, 76], "at the pace that there was when the last call ended"
    pace.rate = None
    for users in (range(100, 101), range(101, 700)):
        assert len(await asyncio.gather(*[submit(batcher, Claim(str(i), 1)) for i in users])) == len(users)
    assert [len(batch) for batch in calls.batches[3:]] == [1, 500, 99]


async def test_a_pace_that_ends_during_a_load_that_does_not_lets_calls_grow_again() -> None:
    calls, pace = Calls(), LanePace()
    batcher = Batcher(calls, pace)
    pace.rate = 40.0
    answers = [submit(batcher, Claim("0", 1))]
    calls.go.release()
    await answers[0]
    answers += [submit(batcher, Claim(str(i), 1)) for i in range(1, 10)]
    await settle()
    pace.rate = None
    for number in range(1, 4):  # there is always somebody waiting
        answers += [submit(batcher, Claim(str(i), 1)) for i in range(100 * number, 100 * number + 60)]
        calls.go.release()
        await settle()
    for _ in answers:
        calls.go.release()
    await asyncio.gather(*answers)
    assert max(len(batch) for batch in calls.batches) > 60
