"""The client over HTTP: what it asks, what it makes of the answers, and when it asks again."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from seckill import OrderState
from seckill.audit import document
from seckill.client import (
    AsyncClient,
    Client,
    ClientError,
    Conflict,
    Denied,
    EventsGone,
    Invalid,
    NoAnswer,
    NotFound,
    Refused,
    Sale,
    TooMany,
    Unavailable,
    documents,
    repeats,
    requests,
)
from seckill.client import asynchronous as module
from seckill.domain.sale import SaleState
from seckill.testing import MemoryEngine, memory_engine
from seckill.web import schemas
from seckill.web.buyers import buyer_data_schemas
from seckill.web.connections.listening_socket import bind
from seckill.web.line import line_schemas
from seckill.web.sales import upload_schemas
from tests.patience import PATIENCE_S
from tests.public.serving import on_a_port, reply, scripted

ACCEPTED = b'{"order_id":"O","state":"queued","sale_id":"S","round":"1","quantity":1}'
NOT_READY = reply(503, b'{"code":"not_ready","detail":"Not now."}', "Retry-After: 0")


@pytest.fixture
async def shop() -> AsyncIterator[MemoryEngine]:
    async with memory_engine() as engine:
        yield engine


async def open_sale(shop: MemoryEngine, **changes: Any) -> Sale:
    now = shop.now()
    facts: dict[str, Any] = {"units": 2, "price_cents": 9900, "begins_at": now, "ends_at": now + timedelta(hours=1)}
    return await shop.operator.create_sale("Phone", **(facts | changes))


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "PAUSE_S_MIN", 0.001)


async def test_a_sale_from_its_beginning_to_its_end(shop: MemoryEngine) -> None:
    async with on_a_port(shop.app) as url, AsyncClient(url, shop.operator._token) as operator:
        begins_at, ends_at = shop.now(), shop.now() + timedelta(hours=1)
        sale = await operator.create_sale("Phone", units=1, price_cents=9900, begins_at=begins_at, ends_at=ends_at)
        assert (sale.state, sale.units, sale.ends_at - sale.begins_at) == (SaleState.OPEN, 1, timedelta(hours=1))
        ann, bob = operator.signed_in(shop.token("ann")), operator.signed_in(shop.token("bob"))
        claimed = await ann.claim(sale.id)
        order = await ann.wait_for_order(claimed.order_id)
        assert (order.state, order.price_cents) == (OrderState.UNPAID, 9900)
        with pytest.raises(Conflict) as refused:
            await bob.claim(sale.id)
        assert (refused.value.code, refused.value.status) == ("sold_out", 409)
        assert (await operator.add_units(sale.id, 1)).units == 2
        await shop.settle()
        second = await bob.claim(sale.id, key="mine")
        assert (await bob.claim(sale.id, key="mine")).order_id == second.order_id
        await bob.wait_for_order(second.order_id)
        assert (await bob.cancel(second.order_id)).state is OrderState.CANCELLED
        assert (await ann.pay(claimed.order_id)).state is OrderState.PAID
        assert [each.order_id for each in (await ann.orders(limit=5)).orders] == [claimed.order_id]
        with pytest.raises(NotFound):
            await bob.order(claimed.order_id)
        assert (await operator.pause_sale(sale.id)).state is SaleState.PAUSED
        assert (await operator.resume_sale(sale.id)).state is SaleState.OPEN
        custody = await operator.custody(sale.id)
        assert (custody.total, custody.paid) == (2, 1)
        assert [each.round for each in await operator.rounds(sale.id)] == [sale.round]
        assert (await operator.close_sale(sale.id)).state is SaleState.ENDED
        assert [each.id for each in (await operator.sales()).sales] == [sale.id]
        assert (await operator.sale(sale.id)).title == "Phone"
        assert await operator.dead_letters() == []
        with pytest.raises(NotFound):
            await operator.dead_letter("1")
        with pytest.raises(Conflict, match="memory://"):
            await operator.audit()
        assert (await operator.call("GET", "/version"))["name"] == "seckill"


async def test_the_blocking_client_does_the_same(shop: MemoryEngine) -> None:
    sale = await open_sale(shop)

    def buy(url: str) -> None:
        with Client(url) as client:
            assert [each.id for each in client.sales().sales] == [sale.id]
            with pytest.raises(Denied) as denied:
                client.claim(sale.id)
            assert denied.value.code == "unauthenticated"
            ann = client.signed_in(shop.token("ann"))
            claimed = ann.claim(sale.id)
            assert ann.wait_for_order(claimed.order_id).state is OrderState.UNPAID
            assert ann.pay(claimed.order_id).state is OrderState.PAID
            assert Client.pay.__doc__ == AsyncClient.pay.__doc__

    async with on_a_port(shop.app) as url:
        await asyncio.to_thread(buy, url)


async def test_a_line_from_joining_to_being_served(shop: MemoryEngine) -> None:
    sale = await open_sale(shop, units=1, order="arrival")
    async with on_a_port(shop.app) as url, AsyncClient(url, shop.token("ann")) as ann:
        bob = ann.signed_in(shop.token("bob"))
        assert await ann.entry_in(sale.id) is None
        joined = await ann.join(sale.id, metadata={"size": "M"})
        assert (joined.state, joined.metadata) == ("waiting", {"size": "M"})
        assert (await ann.join(sale.id)).entry_id == joined.entry_id
        assert (await bob.join(sale.id)).entry_id != joined.entry_id
        elsewhere = ann.signed_in(shop.token("ann"))
        found = await elsewhere.entry_in(sale.id, round_=sale.round)
        assert found is not None
        assert (found.entry_id, found.metadata) == (joined.entry_id, {"size": "M"})

        def look() -> None:
            with Client(url, shop.token("bob")) as client:
                theirs = client.entry_in(sale.id)
                assert theirs is not None
                assert client.leave(theirs.entry_id).state == "left"

        await asyncio.to_thread(look)
        async with asyncio.timeout(PATIENCE_S):
            while found is None or found.order_id is None:
                await shop.settle()
                found = await elsewhere.entry_in(sale.id)
        assert (await ann.order(found.order_id)).metadata == {"size": "M"}
        with pytest.raises(NotFound):
            await bob.leave(joined.entry_id)


async def test_a_claim_can_wait_until_its_order_is_written(shop: MemoryEngine) -> None:
    """It waits because the client wants to, or because the sale does."""
    waits = await open_sale(shop)
    confirms = await open_sale(shop, confirm="ledger")
    assert (waits.confirm, confirms.confirm) == ("gate", "ledger")
    async with on_a_port(shop.app) as url, AsyncClient(url, shop.token("ann")) as ann:
        for sale, wait_s in ((waits, 30), (confirms, 0), (confirms, 30)):
            claimed = await ann.claim(sale.id, wait_s=wait_s, key=sale.id)
            assert claimed.state is OrderState.UNPAID
            assert (await ann.order(claimed.order_id)).state is OrderState.UNPAID


async def test_a_claim_is_repeated_with_its_one_key() -> None:
    async with scripted(NOT_READY, b"", reply(503, b"<html>"), reply(202, ACCEPTED)) as server:
        async with AsyncClient(server.url, "t") as client:
            assert (await client.claim("S")).order_id == "O"
        keys = {asked.partition(b"Idempotency-Key: ")[2].split(b"\r\n")[0] for asked in server.asked}
        assert (len(server.asked), len(keys)) == (4, 1)
        assert len(keys.pop()) >= 20


async def test_a_claim_that_stays_in_doubt_leaves_its_key() -> None:
    async with scripted(*[NOT_READY] * 99) as server, AsyncClient(server.url, "t", repeat_for_s=0.05) as client:
        with pytest.raises(Unavailable, match=r"Not now\.") as given_up:
            await client.claim("S", key="mine")
        assert (given_up.value.key, given_up.value.code) == ("mine", "not_ready")


@pytest.mark.parametrize(
    "answer",
    [
        reply(429, b'{"code":"rate_limited"}', "Retry-After: 0"),
        reply(500, b'{"code":"internal"}'),
        reply(200, b"<html>Sign in to this network"),
        b"",
    ],
    ids=["too fast", "an accident", "somebody else answers", "cut"],
)
async def test_a_claim_goes_on_until_it_knows(answer: bytes) -> None:
    """The first try may have been carried out, so what says nothing about it is no answer."""
    async with scripted(b"", answer, reply(202, ACCEPTED)) as server, AsyncClient(server.url, "t") as client:
        assert (await client.claim("S")).order_id == "O"
        assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(reply(401, b'{"code":"unauthenticated"}'), Denied), (reply(429, b'{"code":"cooling_down"}'), TooMany)],
)
async def test_a_claim_that_is_refused_after_a_lost_answer_leaves_its_key(answer: bytes, kind: type[Refused]) -> None:
    """The client cannot know what became of the first try: with another token, or later, the same key tells."""
    async with scripted(b"", answer) as server, AsyncClient(server.url, "t") as client:
        with pytest.raises(kind) as refused:
            await client.claim("S", key="mine")
    assert refused.value.key == "mine"


async def test_it_waits_as_long_as_it_is_told() -> None:
    told = reply(503, b"{}", "Retry-After: 1")
    async with scripted(told, reply(202, ACCEPTED)) as server, AsyncClient(server.url, "t") as client:
        began_s = time.monotonic()
        await client.claim("S")
        assert time.monotonic() - began_s >= 1.0
        server.answers = [reply(503, b"{}", "Retry-After: 3600")]
        with pytest.raises(Unavailable) as given_up:
            await client.claim("S")
        assert given_up.value.retry_after_s == 3600.0


@pytest.mark.parametrize("answer", [NOT_READY, b""])
async def test_what_an_operator_changes_is_never_repeated(answer: bytes) -> None:
    async with scripted(answer, NOT_READY) as server, AsyncClient(server.url, "t") as client:
        with pytest.raises((Unavailable, NoAnswer)):
            await client.add_units("S", 5)
        assert len(server.asked) == 1


async def test_connections_are_used_again_except_for_what_must_not_be_done_twice() -> None:
    async with scripted(*[reply(200, b"{}")] * 4) as server, AsyncClient(server.url) as client:
        for _ in range(3):
            await client.document(requests.sales())
        assert server.connections == 1
        await client.call("POST", "/v1/x")
        assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n[1]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\n[\r\n2\r\n1]\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + reply(200, b"[1]", "Connection: close"),
    ],
    ids=["until it is closed", "in chunks", "with hints before"],
)
async def test_the_ways_in_which_an_answer_may_be_written(answer: bytes) -> None:
    async with scripted(answer) as server, AsyncClient(server.url, repeat_for_s=0) as client:
        assert await client.call("GET", "/") == [1]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Invalid), (401, Denied), (404, NotFound), (410, Conflict), (429, TooMany), (418, Refused), (500, Refused)],
)
async def test_errors_are_one_tree_with_the_code(status: int, kind: type[Refused]) -> None:
    problem = b'{"code":"c","detail":"No.","order_ids":["O"]}'
    async with scripted(reply(status, problem)) as server, AsyncClient(server.url, "t") as client:
        with pytest.raises(ClientError) as refused:
            await client.order("O")
    assert type(refused.value) is kind
    assert isinstance(refused.value, Refused)
    assert (refused.value.code, str(refused.value), refused.value.problem["order_ids"]) == ("c", "No.", ["O"])


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (reply(200, b"<html>"), "its answer cannot be read"),
        (reply(200, b'{"order_id":1}'), "its answer cannot be read"),
        (b"nonsense\r\n\r\n", "does not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{", "the connection was closed"),
        (reply(502, b"<html>"), "The API answered 502 Bad Gateway."),
    ],
)
async def test_what_is_no_answer(answer: bytes, sentence: str) -> None:
    async with scripted(answer) as server, AsyncClient(server.url, "t", repeat_for_s=0) as client:
        with pytest.raises(ClientError, match=sentence):
            await client.order("O")


async def test_nobody_there_and_nobody_in_time() -> None:
    async with AsyncClient("http://127.0.0.1:1", repeat_for_s=0) as client:
        with pytest.raises(NoAnswer, match=r"The API at http://127\.0\.0\.1:1 does not answer \(Connection refused\)"):
            await client.sales()
    with contextlib.closing(bind("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with AsyncClient(url, repeat_for_s=0, within_s=0.05) as client:
            with pytest.raises(NoAnswer, match=r"nothing came within 0\.05 s"):
                await client.sales()


def test_an_address_and_a_token_that_cannot_be_meant() -> None:
    with pytest.raises(ClientError, match="ftp://there is not an address of the API"):
        AsyncClient("ftp://there")
    with pytest.raises(ClientError, match="printable ASCII"):
        AsyncClient("http://there", "a\r\nX-Evil: 1")


async def test_ids_stay_where_they_belong() -> None:
    async with scripted(*[reply(404, b"{}")] * 2) as server, AsyncClient(server.url, "t", repeat_for_s=0) as client:
        for sale_id in ("a/../b?c", "小"):
            with pytest.raises(NotFound):
                await client.sale(sale_id)
        assert [asked.split(b" ")[1] for asked in server.asked] == [b"/v1/sales/a%2F..%2Fb%3Fc", b"/v1/sales/%E5%B0%8F"]
        assert all(b"Authorization: Bearer t\r\n" in asked for asked in server.asked), "operators are shown more"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (documents.Sale, schemas.Sale),
        (documents.Sales, schemas.Sales),
        (documents.Round, schemas.SaleRound),
        (documents.Rounds, schemas.SaleRounds),
        (documents.Item, schemas.Item),
        (documents.Custody, schemas.Custody),
        (documents.ItemCustody, schemas.ItemCustody),
        (documents.Claimed, schemas.OrderAccepted),
        (documents.Order, schemas.Order),
        (documents.Orders, schemas.Orders),
        (documents.Entry, line_schemas.Entry),
        (documents.OwnEntries, line_schemas.OwnEntries),
        (documents.UploadedImage, upload_schemas.UploadedImage),
        (documents.VoucherCounts, upload_schemas.VoucherCounts),
        (documents.VouchersAdded, upload_schemas.VouchersAdded),
        (documents.Voucher, schemas.Voucher),
        (documents.DeadLetter, schemas.DeadLetter),
        (documents.DeadLetters, schemas.DeadLetters),
        (documents.ErasedBuyer, buyer_data_schemas.ErasedBuyer),
        (documents.Audit, document.Audit),
        (documents.AuditResult, document.AuditResult),
        (documents.AuditFinding, document.AuditFinding),
        (documents.AuditUnits, document.AuditUnits),
    ],
)
def test_documents_have_the_fields_of_the_answers(ours: type[msgspec.Struct], theirs: type[msgspec.Struct]) -> None:
    assert ours.__struct_fields__ == theirs.__struct_fields__


async def sell_to(shop: MemoryEngine, *users: str) -> tuple[Sale, list[str]]:
    sale = await open_sale(shop, units=9)
    bought = [(await shop.buyer(user).claim(sale.id)).order_id for user in users]
    await shop.settle()
    return sale, bought


async def test_all_orders_and_their_export(shop: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPORTED_AT_ONCE", 2)
    sale, bought = await sell_to(shop, "ann", "bob", "eve")
    await shop.buyer("bob").pay(bought[1])
    found = [order async for order in shop.operator.all_orders(sale_id=sale.id)]
    assert [(order.order_id, order.buyer) for order in found] == [*zip(bought, ("ann", "bob", "eve"), strict=True)][
        ::-1
    ]
    paid = [order.order_id async for order in shop.operator.all_orders(state=OrderState.PAID, since=sale.begins_at)]
    assert paid == [bought[1]]
    assert [order async for order in shop.operator.all_orders(until=sale.begins_at)] == []
    portions = [portion async for portion in shop.operator.export_orders("csv", sale_id=sale.id, round_=sale.round)]
    assert [len(portion.splitlines()) for portion in portions] == [3, 1], "the names of the columns come once"


async def test_events_are_read_and_followed(shop: MemoryEngine) -> None:
    sale, bought = await sell_to(shop, "ann")
    page = await shop.operator.events(types=["order.created"], sale_id=sale.id)
    assert [event.data["order_id"] for event in page.events] == bought
    following = shop.operator.follow_events(after=page.next, types=["order.*"])
    coming = asyncio.ensure_future(anext(following))
    await shop.buyer("ann").pay(bought[0])
    async with asyncio.timeout(PATIENCE_S):
        event = await coming
    assert (event.type, event.data["order_id"], event.data["buyer"]) == ("order.paid", bought[0], "ann")
    assert event.cursor > page.next
    await following.aclose()
    with pytest.raises(EventsGone) as gone:
        await anext(shop.operator.follow_events(after=10**6))
    assert (gone.value.code, gone.value.oldest) == ("cursor_gone", 0)
    assert isinstance(gone.value, Conflict)
    again = shop.operator.follow_events(after=gone.value.oldest)
    assert (await anext(again)).type == "sale.created"
    await again.aclose()


async def test_who_asks_for_little_keeps_a_cursor_that_does_not_grow_old(
    shop: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was asked for has happened, and yet there is something to keep."""
    monkeypatch.setattr(module, "POLL_S_MAX", 0.1)  # after which the API answers that nothing has
    sale, _ = await sell_to(shop, "ann", "bob")
    everything = await shop.operator.events()
    pages = shop.operator.event_pages(types=["order.refunded"], sale_id=sale.id)
    async with asyncio.timeout(PATIENCE_S):
        page = await anext(pages)
    assert (page.events, page.next) == ([], everything.next)
    await pages.aclose()


async def test_who_follows_goes_on_where_it_was_when_the_api_is_back() -> None:
    def told(*cursors: int) -> bytes:
        events = [
            {"cursor": cursor, "id": f"e{cursor}", "type": "order.paid", "at": "2026-11-20T02:00:00Z", "data": {}}
            for cursor in cursors
        ]
        return reply(200, msgspec.json.encode({"events": events, "next": max(cursors)}))

    answers = (told(1, 2), b"", NOT_READY, b"", told(3))
    async with scripted(*answers) as api, AsyncClient(api.url, "key", repeat_for_s=0) as client:
        following = client.follow_events()
        assert [(await anext(following)).cursor for _ in range(3)] == [1, 2, 3]
        await following.aclose()
    assert [b"after=2" in asked for asked in api.asked] == [False, True, True, True, True]


async def test_iteration_without_asyncio(shop: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPORTED_AT_ONCE", 2)
    sale, bought = await sell_to(shop, "ann", "bob", "eve")

    def look(url: str) -> None:
        with Client(url, shop.operator._token) as client:
            assert [order.order_id for order in client.all_orders(sale_id=sale.id)] == bought[::-1]
            assert len(list(client.export_orders("jsonl"))) == 2
            followed = []
            for event in client.follow_events(types=["order.created"]):
                followed.append(event.data["order_id"])
                if len(followed) == 3:
                    break
            assert sorted(followed) == sorted(bought)

    async with on_a_port(shop.app) as url:
        await asyncio.to_thread(look, url)
