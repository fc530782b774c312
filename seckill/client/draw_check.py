"""Was this draw made as it says? Written from the definition in docs/door.md alone, so that a mistake in the drawing is
not a mistake of the check as well: it shares no code with it.

commitment  hex SHA-256 of the seed's text, published before anybody could enter
list_hash   hex SHA-256 of all entry ids, sorted as text and joined by line feeds, published before the seed
rank        hex SHA-256 of `seed:beacon:list_hash:entry_id`, beacon empty if there is none
places      the entries by their ranks, the least first
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

ALGORITHM = "sha256(seed:beacon:list_hash:entry_id)"
NAMED_MAX = 5  # of places that are wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    commitment: str
    list_hash: str
    seed: str
    beacon: str
    entries: Sequence[str]  # in the order of their places
    closed_ms: int | None = None  # when nobody could join the draw any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What somebody has kept from the time before the seed was known, and whose entry it was."""

    commitment: str | None = None
    list_hash: str | None = None
    entry_id: str | None = None
    joined_ms: int | None = None  # when that entry was made, as its receipt says


@dataclass(frozen=True, slots=True)
class Flaw:
    code: str
    says: str


@dataclass(frozen=True, slots=True)
class DrawVerdict:
    entries: int
    flaws: tuple[Flaw, ...]
    unproven: tuple[str, ...]  # beside a draw that is as it says
    place: int | None = None  # of the entry that was asked for


def check(draw: Draw, noted: Witness) -> DrawVerdict:
    flaws = [*_flaws_of_list(draw), *_flaws_of_places(draw), *_flaws_of_noted(draw, noted)]
    place = None
    if noted.entry_id is not None:
        place = draw.entries.index(noted.entry_id) + 1 if noted.entry_id in draw.entries else None
        is_late = noted.joined_ms is not None and draw.closed_ms is not None and noted.joined_ms >= draw.closed_ms
        if place is None and not is_late:
            flaws.append(Flaw("dropped", f"The entry {noted.entry_id} is not on the list."))
        elif place is not None and is_late:
            flaws.append(Flaw("late", f"The entry {noted.entry_id} was made after the list was closed."))
    if sha256(draw.seed.encode()).hexdigest() != draw.commitment:
        flaws.insert(0, Flaw("seed", "The seed is not the one that was committed to: its SHA-256 is another."))
    return DrawVerdict(len(draw.entries), tuple(flaws), tuple(_unproven(draw, noted)), place)


def _flaws_of_list(draw: Draw) -> list[Flaw]:
    flaws = []
    in_order = sorted(draw.entries)
    twice = next((one for one, other in pairwise(in_order) if one == other), None)
    if twice is not None:
        flaws.append(Flaw("twice", f"The entry {twice} has more than one place."))
    joined = "\n".join(in_order)
    if (draw.entries and joined.count("\n") != len(in_order) - 1) or "" in in_order[:1]:
        flaws.append(Flaw("list", "An entry's id is empty or has a line feed in it, so two lists could have one hash."))
    if sha256(joined.encode()).hexdigest() != draw.list_hash:
        said = "The entries are not those of the hash: one was dropped, added later, or changed."
        flaws.append(Flaw("list_hash", said))
    return flaws


def _flaws_of_places(draw: Draw) -> list[Flaw]:
    # What all ranks begin with is hashed once.
    head = sha256(f"{draw.seed}:{draw.beacon}:{draw.list_hash}:".encode())
    before, wrong = b"", 0
    named: list[str] = []
    for place, entry in enumerate(draw.entries, 1):
        rank = head.copy()
        rank.update(entry.encode())
        digest = rank.digest()
        if digest < before:
            wrong += 1
            if len(named) < NAMED_MAX:
                named.append(f"{entry} (place {place})")
        before = digest
    if not wrong:
        return []
    more = f" and {wrong - len(named)} more" if wrong > len(named) else ""
    return [Flaw("places", f"Behind an entry of a greater rank: {', '.join(named)}{more}.")]


def _flaws_of_noted(draw: Draw, noted: Witness) -> list[Flaw]:
    flaws = []
    if noted.commitment not in (None, draw.commitment):
        flaws.append(Flaw("commitment", "The commitment is not the one that you have noted: the seed was chosen anew."))
    if noted.list_hash not in (None, draw.list_hash):
        said = "The hash of the list is not the one that you have noted: the list was changed after it was closed."
        flaws.append(Flaw("noted_list", said))
    return flaws


def _unproven(draw: Draw, noted: Witness) -> list[str]:
    said = []
    if noted.commitment is None:
        said.append("That the commitment was published before entries opened: note it then, and give --commitment.")
    if noted.list_hash is None:
        said.append("That the list was closed before the seed was known: note its hash then, and give --list-hash.")
    if draw.beacon:
        said.append("That the beacon is the public value it should be, and became known after the list was closed.")
    else:
        said.append(
            "That the operator, who knew the seed, did not enter until the list suited them: there was no beacon."
        )
    if noted.entry_id is None:
        said.append("That your entry is on the list: give --receipt.")
    said.append("That the entries are of different people, and none of the operator's own: look through the list.")
    said.append("That units were offered in this order: only the places were drawn.")
    return said
