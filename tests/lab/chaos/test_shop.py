"""The shop of a run hears of its orders from a real API and a real keeper, and keeps books of them."""

import time
from contextlib import AsyncExitStack
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from sqlalchemy import Executable, delete, insert, select

from seckill.audit import Verdict, open_auditor
from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import feed
from seckill.backends.webhook.sender import HttpSender
from seckill.bootstrap.engine import open_engine
from seckill.client import AsyncClient, NoAnswer
from seckill.client.connections import Message, Reply
from seckill.domain.webhook_signature import sign, written_secret
from seckill.domain.webhook_target import Target, read_target
from seckill.engine.orders.releases import ReleaseDesk
from seckill.lab.chaos import feed_watch, webhook_receiver
from seckill.lab.chaos.event_books import EventBooks
from seckill.lab.chaos.evidence import Arrival, Evidence, FeedSeen
from seckill.lab.chaos.feed_watch import FeedWatch, open_nodes
from seckill.lab.chaos.final_books import Closing
from seckill.lab.chaos.judgement import Check, judge
from seckill.lab.chaos.webhook_receiver import Manner, WebhookReceiver
from seckill.lab.servers.ports import free_ports
from tests.api.conftest import ADMIN_KEY, OPERATOR, Node, buyer, make_node, settings_of_a_node
from tests.api.webhooks.conftest import Shop, hurry  # noqa: F401 (a fixture: nothing is sent otherwise, only sooner)
from tests.backends.sql.looking import write
from tests.public.serving import on_a_port
from tests.receiver import Receiver

OURS, THEIRS = written_secret(b"o" * 32), written_secret(b"t" * 32)
Demanded = dict[str, tuple[str, ...]]


async def live(node: Node) -> Demanded:
    """One order of each fate, and the events that it must have."""
    desk = ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger)
    priced, free, brief = await node.create(), await node.create(price_cents=0), await node.create(pay_within_s=1)
    await node.refresh()
    made = {user: await node.buy(sale, user) for user, sale in (("ann", priced), ("bob", priced), ("cy", free))}
    made["dan"] = await node.buy(brief, "dan")
    ids = {user: str(answer.json()["order_id"]) for user, answer in made.items()}
    await node.work()
    for user, verb in (("ann", "pay"), ("bob", "cancel")):
        response = await node.http.post(f"/v1/orders/{ids[user]}/{verb}", headers=buyer(user))
        assert response.status_code == 200, response.text
    while not await desk.expire():
        pass
    await desk.pass_on()
    ends = {"ann": "paid", "bob": "cancelled", "cy": "paid", "dan": "expired"}
    return {ids[user]: ("order.created", f"order.{end}") for user, end in ends.items()}


async def told(redis_url: str, database: str, planted: Executable | None = None) -> tuple[Evidence, Demanded]:
    """Returns what the shop has seen when all is over, and what it had to see of the orders. One of its two API
    processes is not there."""
    settings = replace(settings_of_a_node(redis_url, database), webhook_private="on")
    evidence = Evidence()
    receiver = WebhookReceiver(evidence.arrivals, time.monotonic, seed=1)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(settings))
        auditor = await stack.enter_async_context(open_auditor(settings, every_round=True))
        node = await make_node(settings, engine)
        stack.push_async_callback(node.http.aclose)
        made = await node.http.post("/v1/admin/webhooks", json={"url": await receiver.start()}, headers=OPERATOR)
        receiver.secret = made.json()["secret"]
        demanded = await live(node)
        if planted is not None:
            assert isinstance(engine.ledger, SqlLedger)
            await write(engine.ledger, planted)
        closing = Closing(settings, auditor, evidence, time.monotonic)
        stack.push_async_callback(closing.close)
        books = EventBooks(database, evidence, time.monotonic)
        stack.push_async_callback(books.close)
        port = urlsplit(await stack.enter_async_context(on_a_port(node.api))).port
        assert port is not None
        nodes = await stack.enter_async_context(open_nodes([*free_ports(1), port], ADMIN_KEY))
        await stack.enter_async_context(Shop(node, Receiver(), settings).keepers())
        await closing.read_books([])
        await books.read(FeedWatch(nodes, evidence.feed, time.monotonic), receiver)
    return evidence, demanded


def found(evidence: Evidence, name: str) -> Check:
    (check,) = [check for check in judge(evidence).checks if check.name == name]
    return check


@pytest.mark.usefixtures("hurry")
async def test_a_shop_is_told_everything_though_it_refuses_and_one_api_is_away(
    redis_url: str, sqlite_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = {Manner.TAKES: 5, Manner.REFUSES: 3, Manner.HANGS_UP: 2}
    monkeypatch.setattr(webhook_receiver, "MANNERS", often)
    evidence, demanded = await told(redis_url, sqlite_database)
    assert evidence.books.demanded.items() >= demanded.items()
    assert len(evidence.books.demanded) == len(demanded) + 1, "and a payment"
    for name in ("feed", "webhook"):
        assert (found(evidence, name).verdict, found(evidence, name).named) == (Verdict.HOLDS, ())
    assert evidence.feed.resumed == 1, "the one that is away was asked first"
    assert any(not arrival.taken for arrival in evidence.arrivals), "and that the receiver refused showed"
    assert {event.type for event in evidence.feed.followed} >= {"sale.created", "payment.received"}


CANCELLED = feed.c.type == "order.cancelled"
AS_IT_IS = [feed.c[name] for name in ("events", "type", "at_ms", "numbers")]


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize(
    ("planted", "has"),
    [
        (delete(feed).where(CANCELLED), "order.created"),
        (
            insert(feed).from_select(AS_IT_IS, select(*AS_IT_IS).where(CANCELLED)),
            "order.created, order.cancelled, order.cancelled",
        ),
    ],
    ids=["lost", "twice"],
)
async def test_control_an_entry_that_the_ledger_lacks_or_has_twice_is_named(
    redis_url: str, sqlite_database: str, planted: Executable, has: str
) -> None:
    evidence, demanded = await told(redis_url, sqlite_database, planted)
    (order_id,) = [order_id for order_id, types in demanded.items() if "order.cancelled" in types]
    assert found(evidence, "feed").named == (f"{order_id} has {has}, and the ledger order.created, order.cancelled",)
    assert found(evidence, "webhook").verdict is Verdict.HOLDS, "it sends what the feed has"


class Api:
    """Two of five events at a time, after the cursor that it is asked for; `answers` says whether it answers at all."""

    url = "http://api"

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.asked: list[int] = []

    async def send(self, message: Message, within_s: float) -> Reply:
        after = int(parse_qs(urlsplit(message.path).query)["after"][0])
        self.asked.append(after)
        if self._answers and not self._answers.pop(0):
            raise NoAnswer(self.url, "it was killed")
        if after > 5:
            return Reply(status=410, headers={}, body=b'{"code":"cursor_gone","detail":"It is gone."}')
        at, data = "2026-11-20T02:00:01.204Z", {"order_id": "o1", "sale_id": "s1"}
        page = [
            {"cursor": cursor, "id": f"evt_{cursor}", "type": "order.paid", "at": at, "data": data}
            for cursor in range(after + 1, min(after + 3, 6))
        ]
        body = msgspec.json.encode({"events": page, "next": after + len(page)})
        return Reply(status=200, headers={}, body=body)

    async def close(self) -> None:
        pass


def watching(seen: FeedSeen, *apis: Api) -> FeedWatch:
    nodes = [AsyncClient(api.url, "key", repeat_for_s=0, transport=api) for api in apis]
    return FeedWatch(nodes, seen, time.monotonic)


async def test_a_shop_reads_on_where_it_was_at_whichever_api_answers() -> None:
    seen, first, second = FeedSeen(), Api(True, False), Api(True, False)
    assert await watching(seen, first, second).read_to_end()
    assert [event.cursor for event in seen.followed] == [1, 2, 3, 4, 5]
    assert (first.asked, second.asked) == ([0, 2, 4, 5], [2, 4])
    assert (seen.resumed, seen.refused) == (2, [])


async def test_a_cursor_that_was_given_out_and_is_gone_is_kept_for_the_judgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_watch, "END_WITHIN_S", 0.0)
    seen = FeedSeen()
    watch = watching(seen, Api())
    watch._cursor = 6
    assert not await watch.read_to_end()
    assert seen.refused == ["after 6: It is gone."]


async def sent(target: Target, secret: str, event_id: str) -> int | None:
    body = b'{"type":"order.paid","timestamp":"2026-11-20T02:00:01.204Z","data":{"order_id":"o1"}}'
    headers = {"webhook-id": event_id, "webhook-timestamp": "7", "webhook-signature": sign([secret], event_id, 7, body)}
    return (await HttpSender(private=True).send(target, list(headers.items()), body)).status


async def test_the_receiver_tells_what_is_genuine_and_refuses_nothing_when_the_faults_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_receiver, "MANNERS", {Manner.REFUSES: 1})
    arrivals: list[Arrival] = []
    receiver = WebhookReceiver(arrivals, time.monotonic, seed=1)
    receiver.secret = OURS
    target = read_target(await receiver.start(), private=True)
    try:
        assert await sent(target, OURS, "evt_1") == 500
        receiver.calm()
        assert await sent(target, OURS, "evt_1") == 204
        assert await sent(target, THEIRS, "evt_2") == 204
    finally:
        receiver.close()
    assert [(each.event_id, each.genuine, each.taken) for each in arrivals] == [
        ("evt_1", True, False),
        ("evt_1", True, True),
        ("evt_2", False, True),
    ]
