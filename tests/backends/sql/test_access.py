"""Keys and buyers' standing in the ledger, on every database."""

import asyncio

from seckill.backends.sql import SqlLedger
from seckill.domain.operator import Role
from seckill.domain.operator_key import OperatorKey, digest_of
from seckill.ports.access import EVERYBODY
from seckill.ports.record import Actor, RecordFilter, acting_as


def key(key_id: str, name: str = "Li Na") -> OperatorKey:
    return OperatorKey(
        id=key_id, name=name, role=Role.OPERATOR, digest=digest_of(key_id), created_ms=0, created_by="root"
    )


async def test_changes_are_seen_once_and_none_is_passed_over(ledger: SqlLedger) -> None:
    access = ledger.access
    first = await access.changes(-1)
    assert first is not None
    assert (first.keys, first.buyers) == ([], [])
    assert await access.changes(first.version) is None
    made = await access.add_key(key("aa"), 60)
    assert made.expires_ms == made.created_ms + 60_000
    with acting_as(Actor("root", "request-1")):
        blocked = await access.block("Ann", "resells")
        again = await access.block("Ann", "another reason")
        await access.end_tokens(EVERYBODY, 100, "leaked")
    assert again == blocked
    assert (blocked.reason, blocked.blocked_by) == ("resells", "root")
    seen = await access.changes(first.version)
    assert seen is not None
    assert seen.keys == [made]
    assert {each.user for each in seen.buyers} == {"Ann", EVERYBODY}
    assert (await access.standing("ann")).blocked_ms is None, "another buyer"
    await access.unblock("Ann", "a mistake")
    later = await access.changes(seen.version)
    assert later is not None
    assert [(each.user, each.blocked_ms) for each in later.buyers] == [("Ann", None)]
    assert await access.blocked("", 10) == []
    assert (await access.end_tokens(EVERYBODY, 50, "earlier")).tokens_before_s == 100
    entries = await ledger.book.entries(RecordFilter(), None, 10)
    assert [(each.what, each.subject, each.why) for each in entries] == [
        ("tokens.ended", EVERYBODY, "leaked"),
        ("buyer.blocked", "Ann", "resells"),
    ]
    assert [each.what for each in await ledger.book.entries(RecordFilter(what="buyer.*"), None, 10)] == [
        "buyer.blocked"
    ]
    assert await ledger.book.entries(RecordFilter(who="ROOT"), None, 10) == []


async def test_a_key_is_revoked_once(ledger: SqlLedger) -> None:
    await ledger.access.add_key(key("aa"), None)
    with acting_as(Actor("root")):
        answers = await asyncio.gather(*(ledger.access.revoke_key("aa") for _ in range(4)))
    assert len({each and each.revoked_ms for each in answers}) == 1
    assert await ledger.access.revoke_key("bb") is None
    assert [each.what for each in await ledger.book.entries(RecordFilter(), None, 10)] == ["key.revoked"]


async def test_each_change_has_a_version_of_its_own(ledger: SqlLedger) -> None:
    await asyncio.gather(*(ledger.access.block(f"u{number}", "x") for number in range(8)))
    seen = await ledger.access.changes(0)
    assert seen is not None
    assert seen.version == 8
    assert len(seen.buyers) == 8
