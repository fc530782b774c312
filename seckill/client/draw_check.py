"""Checks whether a draw was made as announced. It is written from the definition in docs/door.md alone and shares no
code with the drawing, so that a mistake there is not repeated here.

commitment hex SHA-256 of the seed's text, published before buyers could enter list_hash hex SHA-256 of all entry ids,
sorted as text and joined by line feeds, published before the seed rank hex SHA-256 of `seed:beacon:list_hash:entry_id`,
beacon empty if there is none places the entries by their ranks, the least first beacon where its source was announced:
of the values that are published every `period_s` seconds, number 1 at `genesis_s`, the first that is published more
than 15 s after the list's hash receipt `entry_id.joined_ms.round-signature`: hexadecimal Ed25519 of `receipt
entry_id.joined_ms.round`. Several may share one: then steps follow, each `-l` or `-r` and a hash. From the hex SHA-256
of what is said above, each step makes the next hash, that of `node left right`, where its own stands at the side that
it names; and what is signed is `receipts` and the last
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ALGORITHM = "sha256(seed:beacon:list_hash:entry_id)"
NAMED_MAX = 5  # how many wrong places are named
LATER_S = 15
_PROOF = (
    ": the receipt, which the shop has signed, proves that it was there before the list was closed. "
    "Unless its buyer has left again, it was left out."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconOrigin:
    """The source of the beacon, as announced before buyers could enter."""

    url: str
    genesis_s: int
    period_s: int
    within_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    commitment: str
    list_hash: str
    seed: str
    beacon: str
    entries: Sequence[str]  # in the order of their places
    closed_ms: int | None = None  # when joining the draw ended
    listed_ms: int | None = None  # when the list's hash was published
    source: BeaconOrigin | None = None
    beacon_number: int | None = None
    beacon_missed: bool = False  # its source did not answer in time
    round: str | None = None
    receipt_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    entry_id: str
    joined_ms: int
    round: str | None = None  # None: a receipt of an earlier version, which only the shop can verify
    signature: bytes = b""
    steps: tuple[str, ...] = ()  # `l` or `r` and a hash

    @classmethod
    def read(cls, text: str) -> "Receipt":
        """Raises ValueError."""
        entry_id, joined_ms, rest = text.split(".")
        of_round, *signed = rest.split("-")
        if not signed:
            return cls(entry_id=entry_id, joined_ms=int(joined_ms))
        signature, *steps = signed
        if any(step[:1] not in ("l", "r") or len(step) != 65 for step in steps):
            raise ValueError("what follows its signature are no steps")
        return cls(
            entry_id=entry_id,
            joined_ms=int(joined_ms),
            round=of_round,
            signature=bytes.fromhex(signature),
            steps=tuple(steps),
        )

    def holds(self, key: str) -> bool:
        """Whether the owner of this public key has signed the receipt."""
        signed = f"receipt {self.entry_id}.{self.joined_ms}.{self.round}"
        if self.steps:
            node = sha256(signed.encode()).hexdigest()
            for step in self.steps:
                pair = f"{step[1:]} {node}" if step[0] == "l" else f"{node} {step[1:]}"
                node = sha256(f"node {pair}".encode()).hexdigest()
            signed = f"receipts {node}"
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(self.signature, signed.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


class NoProof(Exception):
    """The given receipt does not belong to this draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What a buyer has noted before the seed was known, and the buyer's entry."""

    commitment: str | None = None
    list_hash: str | None = None
    receipt: Receipt | None = None
    key: str | None = None  # the public key of receipts
    beacon: str | None = None  # the value as its source has published it


@dataclass(frozen=True, slots=True)
class Flaw:
    code: str
    says: str


@dataclass(frozen=True, slots=True)
class DrawVerdict:
    entries: int
    flaws: tuple[Flaw, ...]
    unproven: tuple[str, ...]  # what could not be checked in a draw that is otherwise correct
    place: int | None = None  # of the entry that was asked for


def check(draw: Draw, noted: Witness) -> DrawVerdict:
    """Raises NoProof."""
    flaws = [*_flaws_of_list(draw), *_flaws_of_places(draw), *_flaws_of_noted(draw, noted), *_flaws_of_beacon(draw)]
    place = None
    if noted.receipt is not None:
        mine = noted.receipt.entry_id
        place = draw.entries.index(mine) + 1 if mine in draw.entries else None
        proven = _is_proven(draw, noted, noted.receipt)
        is_late = draw.closed_ms is not None and noted.receipt.joined_ms >= draw.closed_ms
        if place is None and not is_late:
            flaws.append(Flaw("dropped", f"The entry {mine} is not on the list{_PROOF if proven else '.'}"))
        elif place is not None and is_late:
            flaws.append(Flaw("late", f"The entry {mine} was made after the list was closed."))
    if sha256(draw.seed.encode()).hexdigest() != draw.commitment:
        flaws.insert(0, Flaw("seed", "The seed is not the one that was committed to: its SHA-256 is another."))
    return DrawVerdict(len(draw.entries), tuple(flaws), tuple(_unproven(draw, noted)), place)


def _is_proven(draw: Draw, noted: Witness, receipt: Receipt) -> bool:
    key = noted.key or draw.receipt_key
    if receipt.round is None or key is None:
        return False
    if not receipt.holds(key):
        raise NoProof(
            f"The receipt of {receipt.entry_id} is not signed with the key {key}: someone else signed it, or no one."
        )
    if draw.round is not None and receipt.round != draw.round:
        raise NoProof(f"The receipt of {receipt.entry_id} is of round {receipt.round}, and the draw of {draw.round}.")
    return True


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
    if noted.key is not None and draw.receipt_key not in (None, noted.key):
        flaws.append(Flaw("key", "The key of the receipts is not the one that you have noted."))
    if noted.beacon not in (None, draw.beacon):
        flaws.append(Flaw("beacon", "The beacon is not what its source says of that number."))
    if noted.list_hash not in (None, draw.list_hash):
        said = "The hash of the list is not the one that you have noted: the list was changed after it was closed."
        flaws.append(Flaw("noted_list", said))
    return flaws


def _flaws_of_beacon(draw: Draw) -> list[Flaw]:
    if draw.source is None:
        return []
    if draw.beacon_missed:
        both = [Flaw("beacon_round", "It says that the beacon was missed, and was drawn with one.")]
        return both if draw.beacon else []
    wanted = due_number(draw.source, draw.listed_ms)
    if wanted is None or not draw.beacon:
        return [Flaw("beacon_round", "It does not say when the list was published, or has no beacon.")]
    if draw.beacon_number != wanted:
        said = f"The beacon is number {draw.beacon_number} of its source, and should be number {wanted}."
        return [Flaw("beacon_round", said)]
    return []


def due_number(source: BeaconOrigin, listed_ms: int | None) -> int | None:
    """Returns the number of the value that this draw has to use."""
    if listed_ms is None or source.period_s <= 0:
        return None
    number, published_ms = 1, source.genesis_s * 1000
    if (late_ms := listed_ms + LATER_S * 1000 - published_ms) >= 0:
        number += late_ms // (source.period_s * 1000) + 1
    return number


def _unproven(draw: Draw, noted: Witness) -> list[str]:
    said = []
    if noted.commitment is None:
        said.append("That the commitment was published before entries opened: note it then, and give --commitment.")
    if noted.list_hash is None:
        said.append("That the list was closed before the seed was known: note its hash then, and give --list-hash.")
    if draw.beacon_missed and draw.source is not None:
        said.append(
            "That the operator, who knew the seed, did not enter until the list suited them: the beacon of "
            f"{draw.source.url} is said not to have answered for {draw.source.within_s} s, and was left out."
        )
    elif draw.source is not None and noted.beacon is None:
        address = draw.source.url.replace("{round}", str(draw.beacon_number))
        said.append(f"That the beacon is what {address} says: give --ask-beacon, or compare.")
    elif draw.source is not None:
        said.append("That the list was published when it says: note its hash then, and the time.")
    elif draw.beacon:
        said.append("That the beacon is the public value it should be, and became known after the list was closed.")
    else:
        said.append(
            "That the operator, who knew the seed, did not enter until the list suited them: there was no beacon."
        )
    if noted.key is None:
        said.append("That receipts are signed with the key that was published before: note it, and give --key.")
    if noted.receipt is None:
        said.append("That your entry is on the list: give --receipt.")
    elif not _is_proven(draw, noted, noted.receipt):
        said.append("That the receipt is genuine: it has no signature that others than the shop can verify.")
    said.append("That the entries are of different people, and none of the operator's own: look through the list.")
    said.append("That units were offered in this order: only the places were drawn.")
    return said
