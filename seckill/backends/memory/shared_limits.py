"""Counts what uses up a buyer's limit besides the buyer's own orders in the round: orders of other users who are the
same person, and orders in rounds that share the limit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from seckill.backends.memory.store import Contents, HeldRound
from seckill.domain.admission import Claim, Holding, Record
from seckill.domain.sale import RoundRef
from seckill.ports.gate import GateStatus

IsWhole = Callable[[RoundRef, HeldRound], bool]


def beside(
    contents: Contents,
    ref: RoundRef,
    claim: Claim,
    decided: Mapping[str, Record],
    joined: Sequence[Claim],
    whole: IsWhole,
) -> tuple[Holding, ...] | None:
    """Returns None if a part of them is lost. `decided`, `joined`: the changes by earlier claims of the same batch."""
    held = contents.rounds.get(ref)
    if held is None:
        return None
    here = contents.buyers.get(ref, {})
    found: list[Holding] = []
    if claim.person:
        users = {*contents.persons.get(ref, {}).get(claim.person, ())}
        users |= {other.user for other in joined if other.person == claim.person}
        for user in users - {claim.user}:
            found += (decided.get(user) or here[user]).live
    for sibling in held.siblings:
        other = structs.replace(ref, id=sibling)
        round_ = contents.rounds.get(other)
        if round_ is None or round_.status is GateStatus.PREPARING or not whole(other, round_):
            return None
        theirs = contents.buyers.get(other, {})
        for user in {claim.user, *contents.persons.get(other, {}).get(claim.person, ())}:
            found += theirs.get(user, Record()).live
    return tuple(found)


def tell_siblings(contents: Contents, ref: RoundRef) -> None:
    """Tells the rounds that share the limit about this one, before it has sold anything."""
    for sibling in contents.rounds[ref].siblings:
        other = structs.replace(ref, id=sibling)
        theirs = contents.rounds[other]
        if ref.id not in theirs.siblings:
            contents.rounds[other] = replace(theirs, siblings=(*theirs.siblings, ref.id))


def add_person(contents: Contents, ref: RoundRef, person: str, user: str) -> None:
    if person:
        persons = contents.persons.setdefault(ref, {})
        known = persons.get(person, ())
        persons[person] = known if user in known else (*known, user)


def with_persons(contents: Contents, ref: RoundRef) -> dict[str, tuple[Holding, ...]]:
    """Returns the live orders of all users, with the persons as whom they were counted."""
    person_of = {user: person for person, users in contents.persons.get(ref, {}).items() for user in users}
    return {
        user: tuple(structs.replace(held, person=person_of.get(user, "")) for held in record.live)
        for user, record in contents.buyers.get(ref, {}).items()
    }
