"""The line of a sale, as it goes in and out over HTTP."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seckill.domain.line import BEACON_LENGTH_MAX, SERVE_PER_S_MAX, LineOrder
from seckill.domain.sale import QUANTITY_MAX

_ORDERS = (
    "How buyers come to units. `press`: whoever presses first. `arrival`: by their places in a line; who joins before "
    "the beginning is shuffled, the others follow as they come. `draw`: who joins before the beginning takes part in "
    "one draw, the others queue behind."
)
Ordering = Annotated[
    str, Meta(pattern=r"^(press|arrival|draw)$(?!\n)", description=_ORDERS, extra_json_schema={"enum": list(LineOrder)})
]
ServePerS = Annotated[int, Meta(ge=1, le=SERVE_PER_S_MAX, description="Entries that are served in a second, at most.")]
Beacon = Annotated[str, Meta(min_length=1, max_length=BEACON_LENGTH_MAX, pattern=r"^[!-9;-~]+$(?!\n)")]


class NewEntry(msgspec.Struct, forbid_unknown_fields=True):
    quantity: Annotated[int, Meta(ge=1, le=QUANTITY_MAX)] = 1
    metadata: dict[str, Any] | None = None  # the shop's own, shown with the entry and with its order
    item_id: Annotated[str, Meta(max_length=64)] | None = None  # of a sale that has items


class Entry(msgspec.Struct, kw_only=True):
    """A buyer's place in a line."""

    entry_id: str
    sale_id: str
    round: str
    state: str  # waiting, served, left or passed_over
    quantity: int
    place: int | None  # null: the draw is not made yet
    ahead: int | None  # people who are served before; null: no place yet, or not waiting any more
    of: int  # people who wait
    units: int  # of the round, or of the item
    chance: float | None  # of getting a unit; null: not known
    joined_at: str
    receipt: str  # signed: that this entry was made then. Anyone can check it with `GET /v1/line-keys`
    order_id: str | None = None  # once it is served
    reason: str | None = None  # why it was removed or passed over
    item_id: str | UnsetType = UNSET  # of a sale that has items
    buyer: str | UnsetType = UNSET  # for operators only
    metadata: dict[str, Any] | UnsetType = UNSET  # as it was joined with; left out where there is none


class OwnEntries(msgspec.Struct):
    entries: list[Entry]  # the buyer's, in the line of one round: one, or none


class LineShown(msgspec.Struct, kw_only=True):
    """How far the line has come. The same for everybody, so pages ask for this and not for each entry."""

    order: Ordering
    waiting: int
    served: int
    served_up_to: int  # no one waits at this place or a better one
    places: int  # the last that was given
    units: int
    units_left: int | None  # null: not known at the moment
    unpaid: int  # units that may come back
    drawn: bool  # places are known
    paused: bool  # no one is served for now


class LineOfOperator(msgspec.Struct, kw_only=True):
    line: LineShown
    serve_per_s: int | None
    beacon: str | None
    wants_beacon: bool  # the draw waits for it, or has waited
    fetches_beacon: bool  # no operator has to give it
    closed_at: str | None
    drawn_at: str | None
    entries: list[Entry]  # by place; before the draw is made, those in it in no order that means anything
    next: int | None  # give it as `after` to see those behind


class LinePatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    paused: bool | None = None
    serve_per_s: ServePerS | UnsetType | None = UNSET  # null: as fast as it goes
    beacon: Beacon | None = None


class EntryRemoval(msgspec.Struct, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(min_length=1, max_length=255)]


class BeaconOrigin(msgspec.Struct, kw_only=True):
    """Announced before anybody can join. The draw takes the first value that is published more than 15 seconds after
    `listed_at`: value n is published at `genesis_s` + (n - 1) · `period_s`, in Unix time."""

    url: str  # with `{round}`
    genesis_s: int
    period_s: int
    within_s: int  # if it does not answer for so long, the draw is made by the seed alone


class Draw(msgspec.Struct, kw_only=True):
    """With `/draw/entries`, all that is needed to make the draw again."""

    sale_id: str
    round: str
    commitment: str  # hexadecimal SHA-256 of the seed's hexadecimal text; there before anybody can join
    algorithm: str
    entries: int | None  # in the draw; null: the list is not closed yet
    list_hash: str | None  # hexadecimal SHA-256 of all entry ids, sorted as text and joined by line feeds
    seed: str | None  # a secret until the draw is made
    beacon: str | None
    wants_beacon: bool
    closed_at: str | None
    drawn_at: str | None
    receipt_key: str  # hexadecimal: the Ed25519 key that receipts are signed with
    listed_at: str | None = None  # when `list_hash` was published
    beacon_source: BeaconOrigin | None = None  # where the beacon comes from; null: an operator gives it
    beacon_round: int | None = None  # which of the source's values it is
    beacon_missed_at: str | None = None  # the source did not answer in time: drawn by the seed alone


class LineKey(msgspec.Struct, kw_only=True):
    """A JSON Web Key (RFC 8037)."""

    kty: str
    crv: str
    x: str
    kid: str
    use: str


class LineKeys(msgspec.Struct):
    keys: list[LineKey]


class DrawEntries(msgspec.Struct):
    entries: list[str]  # in the order of their places; before the draw is made, in no order that means anything
    drawn: bool
    next: int | None  # give it as `after` for those that follow
