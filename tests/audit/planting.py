"""Flaws planted by hand, behind the engine's back, in the gate or in the ledger."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from seckill.backends.redis import keys
from seckill.domain.idempotency_key import request_id
from tests.audit.conftest import UNITS, World

HOUR_MS = 3_600_000
ROUND = "the round"
OTHER_ITEM = {"items": 77, "total:77": 9, "dealt:77": 9, "available:77": 9, "admitted:77": 0, "released:77": 0}
FORGED = 1 << 33  # an order number that no buyer was ever given

Plant = Callable[[World], Awaitable[None]]


@dataclass(frozen=True)
class Planting:
    """`breaks`: each invariant that must turn red, with the buyer whose order it must name, or the round."""

    name: str
    plant: Plant
    breaks: dict[str, str]
    unsure: bool = False  # gate and ledger cannot be compared then
    mended: bool = False  # `seckill repair` can undo it


def in_gate(**changes: int) -> Plant:
    """Adds to the counters of the round in the gate."""

    async def plant(world: World) -> None:
        for name, by in changes.items():
            await world.redis.hincrby(await world.round_key(), name, by)

    return plant


def set_in_gate(**values: Any) -> Plant:
    async def plant(world: World) -> None:
        await world.redis.hset(await world.round_key(), mapping=values)

    return plant


def sql(statement: str, of: str = "ann", **parameters: Any) -> Plant:
    async def plant(world: World) -> None:
        facts = {"id": world.numbers[of], "round": world.round_id, "forged": FORGED, **parameters}
        await world.sql(statement, **{name: value for name, value in facts.items() if f":{name}" in statement})

    return plant


def record(user: str, change: Callable[[str], str]) -> Plant:
    """Changes a buyer's record in the gate."""

    async def plant(world: World) -> None:
        key = await world.buyers_key()
        before = await world.redis.hget(key, user)
        await world.redis.hset(key, user, change((before or b"").decode()))

    return plant


def note(**changes: str) -> Callable[[str], str]:
    """Changes what a record says of orders that are over."""

    def change(text: str) -> str:
        said, _, orders = text.removeprefix("~").partition(" ")
        facts = dict(zip(("units", "lapses", "lapsed_ms"), said.split(":"), strict=True)) | changes
        return f"~{':'.join(facts.values())} {orders}".rstrip()

    return change


def both(*plants: Plant) -> Plant:
    async def plant(world: World) -> None:
        for each in plants:
            await each(world)

    return plant


def gives_codes(*owners: str) -> Plant:
    """The sale gives codes, and these buyers' orders have one each; enough of them are free for all other units."""

    async def plant(world: World) -> None:
        await world.sql("UPDATE sales SET vouchers = 1")
        await world.sql(
            "INSERT INTO voucher_uploads (sale_id, created_ms, touched_ms, complete_ms)"
            " SELECT sale_id, 1, 1, 1 FROM rounds WHERE id = :round",
            round=world.round_id,
        )
        numbers = [world.numbers[owner] for owner in owners]
        [(bought,)] = await world.query("SELECT COUNT(*) FROM orders WHERE state = 'paid'")
        free = [None] * (UNITS - bought)
        for place, number in enumerate([*numbers, *free], 1):
            await world.sql(
                "INSERT INTO vouchers (sale_id, upload_id, line, code, order_id)"
                " SELECT sale_id, id, :place, :code, :number FROM voucher_uploads",
                place=place,
                code=f"free-{place - len(numbers)}" if number is None else f"of-{number}",
                number=number,
            )

    return plant


async def forget_buyer(world: World) -> None:
    await world.redis.hdel(await world.buyers_key(), "ann")


async def forget_note(world: World) -> None:
    """The order that is over is there, but in a place where it is never looked for."""
    await world.redis.hdel(await world.buyers_key(), "cid")


async def revive(world: World) -> None:
    """Makes the order appear twice: ended, and live."""
    place = keys.past_field("cid", request_id("key of cid"), 0, 0)
    over = (await world.redis.hget(await world.past_key(), place)).decode()
    await record("cid", lambda note: f"{note} {over[:-1]}1")(world)


def past(change: Callable[[str, str], tuple[str, str] | None]) -> Plant:
    """Changes the place of cid's ended order, and its content; None: removes it."""

    async def plant(world: World) -> None:
        key = await world.past_key()
        (place,) = [place for place in map(bytes.decode, await world.redis.hkeys(key)) if place.endswith(" cid")]
        changed = change(place, (await world.redis.hget(key, place)).decode())
        await world.redis.hdel(key, place)
        if changed is not None:
            await world.redis.hset(key, *changed)

    return plant


async def delete_entry(world: World) -> None:
    """The queue loses it."""
    key = await world.stream_key()
    [(entry_id, _)] = await world.redis.xrange(key)
    await world.redis.xdel(key, entry_id)


async def acknowledge_unwritten(world: World) -> None:
    """A worker that says "done" before it has written anything."""
    (delivery,) = await world.engine.transport.read(10, 0)
    await world.engine.transport.settle([delivery])


def entry(**changes: Any) -> Plant:
    """Puts a changed copy of the queued entry in its place."""

    async def plant(world: World) -> None:
        key = await world.stream_key()
        [(entry_id, fields)] = await world.redis.xrange(key)
        await world.redis.xdel(key, entry_id)
        await world.redis.xadd(key, {"order": json.dumps(json.loads(fields[b"order"]) | changes)})

    return plant


async def forge_entry(world: World) -> None:
    key = await world.stream_key()
    [(_, fields)] = await world.redis.xrange(key)
    forged = json.loads(fields[b"order"]) | {"counter": 0, "seconds": FORGED >> 32, "user": "mallory"}
    await world.redis.xadd(key, {"order": json.dumps(forged | {"lane": 0})})


async def garble_entry(world: World) -> None:
    await world.redis.xadd(await world.stream_key(), {"order": "{"})


async def old_entry(world: World) -> None:
    key = await world.stream_key()
    [(_, fields)] = await world.redis.xrange(key)
    await world.redis.delete(key)
    await world.redis.xadd(key, fields, id="1600000000000-1")


async def forge_order(world: World) -> None:
    """Writes an order and all that belongs to it into the ledger, as if it had come through the gate."""
    await world.sql(
        "INSERT INTO orders (id, round_id, sale_id, user_id, quantity, state, active_slot, slot, request_id, epoch,"
        " price_cents, currency, created_ms, recorded_ms, expires_ms)"
        " SELECT :forged, round_id, sale_id, 'mallory', quantity, state, active_slot, slot, request_id, epoch,"
        " price_cents, currency, created_ms, recorded_ms, expires_ms FROM orders WHERE id = :id",
        forged=FORGED + (world.numbers["ann"] & 0xFF000000),
        id=world.numbers["ann"],
    )
    await world.sql(
        "INSERT INTO order_events (order_id, from_state, to_state, at_ms, cause)"
        " VALUES (:forged, 'queued', 'unpaid', 1, 'forged')",
        forged=FORGED + (world.numbers["ann"] & 0xFF000000),
    )
    await world.sql("UPDATE rounds SET sold = sold + 1, written = written + 1 WHERE id = :id", id=world.round_id)
    world.numbers["mallory"] = FORGED + (world.numbers["ann"] & 0xFF000000)


async def lower_limit(world: World) -> None:
    """Makes it look as if the limit had never allowed what gil has."""
    await world.sell("gil", quantity=2)
    await world.sql("UPDATE rounds SET limit_per_buyer = 1, limit_before = 1 WHERE id = :id", id=world.round_id)
    await world.redis.hset(await world.round_key(), "limit", 1)


async def invent_buyer(world: World) -> None:
    await world.redis.hset(await world.buyers_key(), "zoe", "1:1:1:1::1")
    world.numbers["zoe"] = (1 << 32) | (world.numbers["ann"] & 0xFF000000) | 1


_OUTBOX = "INSERT INTO outbox (kind, order_id, round_id, epoch, payload, created_ms) VALUES"
_NEW = "(SELECT max(created_ms) FROM outbox)"

PLANTINGS = [
    Planting("a unit was invented", in_gate(available=1), {"stock": ROUND}, mended=True),
    Planting("a unit has vanished", in_gate(available=-1), {"stock": ROUND}, mended=True),
    Planting(
        "the gate has items that the sale has not",
        set_in_gate(**OTHER_ITEM),
        {"items": ROUND},
        mended=True,
    ),
    Planting("units were put on sale in the gate only", in_gate(total=1, available=1), {"epoch": ROUND}, mended=True),
    Planting("an admission was counted twice", in_gate(admitted=1, available=-1), {"buyers": ROUND}, mended=True),
    Planting(
        "a release was counted twice",
        in_gate(released=2, available=2),
        {"buyers": ROUND, "give_back": ROUND},
        mended=True,
    ),
    Planting(
        "the gate's counters went back in time",
        in_gate(admitted=-3, available=3),
        {"admission": ROUND, "buyers": ROUND},
        mended=True,
    ),
    Planting("the gate is of another epoch", set_in_gate(epoch=7), {"epoch": ROUND}, unsure=True),
    Planting(
        "the ledger is of another epoch", sql("UPDATE rounds SET epoch = 2"), {"epoch": ROUND}, unsure=True, mended=True
    ),
    Planting("nobody has to wait in the gate", set_in_gate(cool_down_s=0), {"epoch": ROUND}, mended=True),
    Planting("the gate sells after the end", in_gate(ends_ms=HOUR_MS), {"epoch": ROUND}, mended=True),
    Planting("the gate begins before its time", in_gate(begins_ms=-HOUR_MS), {"epoch": ROUND}, mended=True),
    Planting("another limit in the gate", in_gate(limit=1), {"epoch": ROUND}, mended=True),
    Planting("the gate was opened another time", set_in_gate(opened_ms=5), {"epoch": ROUND}, mended=True),
    Planting("the gate's rules are newer than the ledger's", set_in_gate(revision=9), {"epoch": ROUND}, mended=True),
    Planting("the gate forgot a buyer", forget_buyer, {"admission": "ann", "buyers": ROUND}, mended=True),
    Planting("the gate has a buyer that never was", invent_buyer, {"lost": "zoe", "buyers": ROUND}),
    Planting("a buyer's record cannot be read", record("zoe", lambda _: "x"), {"buyers": "zoe"}, mended=True),
    Planting(
        "a buyer's record with a number of no order",
        both(record("zoe", lambda _: f"{1 << 31}:1:1:1::1"), record("yul", lambda _: f"1:1:{'9' * 5000}:1::1")),
        {"buyers": "zoe"},
        mended=True,
    ),
    Planting(
        "given back in the gate, though not decided",
        both(record("ann", lambda text: text[:-1] + "0"), in_gate(released=1, available=1)),
        {"give_back": "ann"},
        mended=True,
    ),
    Planting(
        "the gate forgot an order that is over",
        past(lambda *_: None),
        {"admission": "cid", "buyers": ROUND},
        mended=True,
    ),
    Planting("a record does not say that orders are over", forget_note, {"buyers": "cid"}, mended=True),
    Planting(
        "a buyer who let an order lapse need not wait", record("cid", note(lapses="0")), {"buyers": "cid"}, mended=True
    ),
    Planting("a lapse was long ago in the gate", record("dan", note(lapsed_ms="0")), {"buyers": "dan"}, mended=True),
    Planting("a lapse that never was", record("cid", note(lapses="9")), {"buyers": "cid"}, mended=True),
    Planting(
        "an order that is over stands where nobody looks for it",
        past(lambda place, text: (f"x{place}", text)),
        {"admission": "cid", "buyers": "cid"},
        mended=True,
    ),
    Planting(
        "an order that is over is among the live ones, too",
        both(revive, in_gate(admitted=1, available=-1)),
        {"buyers": "cid", "releases": "cid"},
        mended=True,
    ),
    Planting("somebody has more than the limit", lower_limit, {"limit": "gil"}),
    Planting("an order without an admission", forge_order, {"admission": "mallory"}, mended=True),
    Planting("an entry vanished from the queue", delete_entry, {"lost": "fay"}, mended=True),
    Planting("an entry was acknowledged before it was written", acknowledge_unwritten, {"lost": "fay"}, mended=True),
    Planting("a queue entry with another content", entry(quantity=2), {"queue": "fay"}),
    Planting("a queue entry of another buyer", entry(user="mallory"), {"queue": "fay"}),
    Planting("a queue entry that nobody admitted", forge_entry, {"queue": "mallory"}),
    Planting("a queue entry that cannot be read", garble_entry, {"queue": "nobody"}),
    Planting("a queue entry that nobody takes", old_entry, {"progress": ROUND}),
    Planting(
        "a row was deleted", sql("DELETE FROM orders WHERE id = :id", of="bob"), {"lost": "bob", "counters": ROUND}
    ),
    Planting(
        "more is counted as sold than there is",
        sql("UPDATE rounds SET sold = sold + 1"),
        {"counters": ROUND},
        mended=True,
    ),
    Planting(
        "less is counted as sold than there is",
        sql("UPDATE rounds SET sold = sold - 1"),
        {"counters": ROUND},
        mended=True,
    ),
    Planting(
        "less is counted as written than there is",
        sql("UPDATE rounds SET written = written - 1"),
        {"counters": ROUND},
        mended=True,
    ),
    Planting(
        "another slot in the ledger than in the gate",
        sql("UPDATE orders SET slot = 9, active_slot = 9 WHERE id = :id"),
        {"orders": "ann"},
        mended=True,
    ),
    Planting(
        "another key in the gate than in the ledger",
        record("ann", lambda text: ":".join([*text.split(":")[:4], "other", "1"])),
        {"orders": "ann"},
        mended=True,
    ),
    Planting(
        "an order that is over still has its slot",
        sql("UPDATE orders SET active_slot = 1 WHERE id = :id", of="cid"),
        {"orders": "cid", "releases": "cid", "counters": ROUND, "give_back": "cid"},
    ),
    Planting(
        "a paid order is unpaid again",
        sql("UPDATE orders SET state = 'unpaid' WHERE id = :id", of="bob"),
        {"history": "bob", "money": "bob"},
    ),
    Planting(
        "a cancelled order lives again",
        sql("UPDATE orders SET state = 'unpaid', active_slot = slot WHERE id = :id", of="cid"),
        {"history": "cid", "releases": "cid", "counters": ROUND, "give_back": "cid"},
    ),
    Planting("an order without a history", sql("DELETE FROM order_events WHERE order_id = :id"), {"history": "ann"}),
    Planting(
        "a step was taken twice",
        sql(
            "INSERT INTO order_events (order_id, from_state, to_state, at_ms, cause)"
            " VALUES (:id, 'queued', 'unpaid', 1, 'again')"
        ),
        {"history": "ann"},
    ),
    Planting(
        "the release of an order that lives",
        sql(f"{_OUTBOX} ('release', :id, :round, 1, 'cancelled', {_NEW})"),
        {"releases": "ann"},
    ),
    Planting(
        "the release of an order that never was",
        sql(f"{_OUTBOX} ('release', :forged, :round, 1, 'cancelled', {_NEW})"),
        {"releases": "forged"},
    ),
    Planting(
        "over, but its release was never decided",
        sql("DELETE FROM outbox WHERE order_id = :id", of="cid"),
        {"releases": "cid"},
    ),
    Planting(
        "a release that is said to be passed on and is not",
        sql("UPDATE outbox SET done_ms = 1 WHERE order_id = :id", of="eve"),
        {"releases": "eve"},
        mended=True,
    ),
    Planting(
        "a release that no keeper passes on",
        sql(f"UPDATE outbox SET created_ms = created_ms - {HOUR_MS} WHERE order_id = :id", of="eve"),
        {"progress": "eve"},
        mended=True,
    ),
    Planting(
        "expired too early",
        sql("UPDATE orders SET closed_ms = expires_ms - 1000 WHERE id = :id", of="dan"),
        {"time": "dan"},
    ),
    Planting(
        "over, but nobody knows since when",
        sql("UPDATE orders SET closed_ms = NULL WHERE id = :id", of="dan"),
        {"orders": "dan"},
    ),
    Planting(
        "less time to pay than announced",
        sql("UPDATE orders SET expires_ms = expires_ms - 60000 WHERE id = :id"),
        {"time": "ann"},
    ),
    Planting(
        "more time to pay than announced",
        sql(f"UPDATE orders SET expires_ms = expires_ms + {24 * HOUR_MS} WHERE id = :id"),
        {"time": "ann"},
    ),
    Planting("a paid order without its code", gives_codes(), {"vouchers": "bob"}),
    Planting(
        "a code of an order that is not paid",
        gives_codes("bob", "ann"),
        {"vouchers": "ann"},
    ),
    Planting(
        "a code of an order that does not exist",
        both(gives_codes("bob"), sql("UPDATE vouchers SET order_id = :forged WHERE code = 'free-1'")),
        {"vouchers": ROUND},
    ),
    Planting(
        "a code of a paid order that is void",
        both(gives_codes("bob"), sql("UPDATE vouchers SET void_ms = 1 WHERE order_id = :id", of="bob")),
        {"vouchers": "bob"},
    ),
    Planting(
        "fewer free codes than units to sell",
        both(gives_codes("bob"), sql("DELETE FROM vouchers WHERE code = 'free-1'")),
        {"vouchers": ROUND},
    ),
    Planting(
        "a code that is for another item than its order's",
        both(
            gives_codes("bob"),
            sql(
                "INSERT INTO voucher_uploads (id, sale_id, created_ms, touched_ms, complete_ms, item_id)"
                " SELECT 777, sale_id, 1, 1, 1, 77 FROM rounds WHERE id = :round"
            ),
            sql("UPDATE vouchers SET upload_id = 777 WHERE order_id = :id", of="bob"),
        ),
        {"vouchers": "bob"},
    ),
    Planting(
        "served by a line, without an order",
        both(
            sql(
                "INSERT INTO round_lines (round_id, sale_id, order_by, places, served)"
                " SELECT id, sale_id, 'press', 1, 1 FROM rounds WHERE id = :round"
            ),
            sql(
                "INSERT INTO line_entries (round_id, user_id, quantity, state, place, joined_ms, order_id)"
                " VALUES (:round, 'ann', 1, 2, 1, 1, :forged)"
            ),
        ),
        {"line": "ann"},
    ),
    Planting(
        "paid, but the money is gone", sql("DELETE FROM payments WHERE settles = :id", of="bob"), {"money": "bob"}
    ),
    Planting("money that pays for another order", sql("UPDATE payments SET settles = :id"), {"money": "ann"}),
    Planting("less was paid than it costs", sql("UPDATE payments SET amount_cents = 1"), {"money": "bob"}),
    Planting(
        "money that neither pays nor goes back",
        sql(
            "INSERT INTO payments (order_id, provider, provider_ref, amount_cents, currency, created_ms)"
            " VALUES (:id, 'sandbox', 'twice', 9900, 'CNY', 1)",
            of="bob",
        ),
        {"money": "bob"},
    ),
    Planting(
        "a part of the price goes back, and the order does not say so",
        sql(
            "INSERT INTO refunds (payment_id, amount_cents, currency, reason, attempts, created_ms)"
            " SELECT id, 100, 'CNY', 'operator', 0, 1 FROM payments WHERE settles = :id",
            of="bob",
        ),
        {"money": "bob"},
    ),
    Planting(
        "an order says that a part of its price goes back, and nothing does",
        sql("UPDATE orders SET refunded_cents = 100 WHERE id = :id", of="bob"),
        {"money": "bob"},
    ),
    Planting(
        "a paid order whose units are gone though nothing was refunded",
        sql("UPDATE orders SET active_slot = NULL WHERE id = :id", of="bob"),
        {"orders": "bob", "releases": "bob", "counters": ROUND},
    ),
    Planting(
        "unpaid long after its time",
        sql("UPDATE orders SET recorded_ms = 0, expires_ms = 900000 WHERE id = :id"),
        {"progress": "ann"},
        mended=True,
    ),
]
