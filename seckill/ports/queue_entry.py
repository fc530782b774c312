"""The form of a queue entry, on every transport.

An entry has one order, as JSON. In a lane whose readers are all known to understand it, an entry may have all orders
that one call of the gate has admitted, as MessagePack: common values once, and a list for each other field.
"""

import hashlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, structs

from seckill.domain.admission import Admission
from seckill.domain.goods import METADATA_BYTES_MAX
from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import COUNTER_MAX, OrderNumber
from seckill.domain.sale import QUANTITY_MAX
from seckill.domain.trace import read_trace
from seckill.ports.transport import Delivery

VERSION = 1
TOGETHER = 2  # the version of an entry with several orders
_SEVERAL = 2
_INT_MAX = (1 << 31) - 1
_EXACT_MAX = (1 << 53) - 1  # no gate counts further, and every database can hold it


_Round = Annotated[int, Meta(ge=1, le=_EXACT_MAX)]
_Epoch = Annotated[int, Meta(ge=0, le=_INT_MAX)]
_Lane = Annotated[int, Meta(ge=0, le=255)]
_Seconds = Annotated[int, Meta(ge=0, le=_INT_MAX)]
_Ms = Annotated[int, Meta(ge=0, le=_EXACT_MAX)]
_Counter = Annotated[int, Meta(ge=0, le=COUNTER_MAX)]
_Quantity = Annotated[int, Meta(ge=1, le=QUANTITY_MAX)]
_Slot = Annotated[int, Meta(ge=1, le=_INT_MAX)]
_User = Annotated[str, Meta(max_length=128)]
_Request = Annotated[str, Meta(max_length=64)]
_Metadata = Annotated[str, Meta(max_length=METADATA_BYTES_MAX)]
_Item = Annotated[int, Meta(ge=0, le=_EXACT_MAX)]
_Person = Annotated[str, Meta(max_length=128)]


class _Fields(msgspec.Struct, omit_defaults=True):
    """The fields that a gate writes, with bounds: a value that no gate can have written must not reach a database."""

    v: int
    round: _Round
    epoch: _Epoch
    lane: _Lane
    seconds: _Seconds
    at_ms: _Ms
    counter: _Counter
    quantity: _Quantity
    slot: _Slot
    user: _User
    request: _Request
    metadata: _Metadata = ""  # not there: the claim had none
    item: _Item = NO_ITEM  # not there: the sale has none
    person: _Person = ""  # not there: the limit counts by user

    def admission(self) -> Admission:
        return Admission(
            number=OrderNumber(self.seconds, self.lane, self.counter),
            round_id=self.round,
            epoch=self.epoch,
            user=self.user,
            quantity=self.quantity,
            slot=self.slot,
            request_id=self.request,
            admitted_ms=self.at_ms,
            metadata=self.metadata,
            item=self.item,
            person=self.person,
        )


class _Entry(_Fields, forbid_unknown_fields=True):
    """Strict: an extra field means that another version wrote it."""


class _Together(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Orders that were admitted by one call, with consecutive counters. A list without any values is empty."""

    v: int
    round: _Round
    epoch: _Epoch
    lane: _Lane
    seconds: _Seconds
    at_ms: _Ms
    counter: _Counter  # of the first
    users: list[_User]
    quantities: list[_Quantity]
    slots: list[_Slot]
    requests: list[_Request]
    metadata: list[_Metadata]
    items: list[_Item]
    persons: list[_Person]


_decoder = msgspec.json.Decoder(_Entry)
_together_decoder = msgspec.msgpack.Decoder(_Together)
_any_decoder = msgspec.msgpack.Decoder(list[Any])
_loose_decoder = msgspec.json.Decoder(_Fields)
_object_decoder = msgspec.json.Decoder(dict[str, Any])


def write_entry(admission: Admission) -> bytes:
    """As `admit.lua` writes it."""
    number = admission.number
    entry = _Entry(
        v=VERSION,
        round=admission.round_id,
        epoch=admission.epoch,
        lane=number.lane,
        seconds=number.seconds,
        at_ms=admission.admitted_ms,
        counter=number.counter,
        quantity=admission.quantity,
        slot=admission.slot,
        user=admission.user,
        request=admission.request_id,
        metadata=admission.metadata,
        item=admission.item,
        person=admission.person,
    )
    return msgspec.json.encode(entry)


def read_entry(lane: int, entry_id: str, payload: bytes, trace: bytes = b"") -> Delivery:
    """Never raises: for an entry that cannot be understood, the delivery says why and keeps the text. `trace` travels
    beside the text, where earlier versions do not look; an unreadable one is ignored."""
    try:
        entry = _decoder.decode(payload)
        if entry.metadata:
            _object_decoder.decode(entry.metadata)  # otherwise the order could not be shown to anyone
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Delivery(lane, entry_id, payload, None, f"the entry cannot be read: {error}")
    if entry.v != VERSION or entry.lane != lane:
        problem = f"version {entry.v}, lane {entry.lane}: not an entry of this version and lane"
        return Delivery(lane, entry_id, payload, None, problem)
    admission = entry.admission()
    if trace and (context := read_trace(trace)) is not None:
        admission = structs.replace(admission, trace=str(context))
    return Delivery(lane, entry_id, payload, admission)


def write_together(admissions: Sequence[Admission]) -> bytes:
    """Writes orders of one call, as `admit.lua` does."""
    first = admissions[0]

    def of_all(name: str) -> list[Any]:
        found = list(map(attrgetter(name), admissions))
        return found if any(found) else []

    together = _Together(
        v=TOGETHER,
        round=first.round_id,
        epoch=first.epoch,
        lane=first.number.lane,
        seconds=first.number.seconds,
        at_ms=first.admitted_ms,
        counter=first.number.counter,
        users=[each.user for each in admissions],
        quantities=[each.quantity for each in admissions],
        slots=[each.slot for each in admissions],
        requests=of_all("request_id"),
        metadata=of_all("metadata"),
        items=of_all("item"),
        persons=of_all("person"),
    )
    return msgspec.msgpack.encode(together)


def read_together(lane: int, entry_id: str, payload: bytes) -> list[Delivery]:
    """Never raises. An order that cannot be understood does not affect the others."""
    try:
        found = _together_decoder.decode(payload)
        for metadata in filter(None, found.metadata):
            _object_decoder.decode(metadata)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _read_apart(lane, entry_id, payload)
    n = len(found.users)
    if n < _SEVERAL or found.lane != lane or not _is_as_written(found, n):
        return _read_apart(lane, entry_id, payload)
    seconds, round_id, epoch, at_ms = found.seconds, found.round, found.epoch, found.at_ms
    rows = zip(
        range(found.counter, found.counter + n),
        found.users,
        found.quantities,
        found.slots,
        found.requests or ("",) * n,
        found.metadata or ("",) * n,
        found.items or (NO_ITEM,) * n,
        found.persons or ("",) * n,
        strict=True,
    )
    return [
        Delivery(
            lane,
            entry_id,
            b"",
            Admission(
                number=OrderNumber(seconds, lane, counter),
                round_id=round_id,
                epoch=epoch,
                user=user,
                quantity=quantity,
                slot=slot,
                request_id=request,
                admitted_ms=at_ms,
                metadata=metadata,
                item=item,
                person=person,
            ),
            "",
            n,
        )
        for counter, user, quantity, slot, request, metadata, item, person in rows
    ]


def _is_as_written(found: _Together, n: int) -> bool:
    if found.v != TOGETHER or found.counter + n - 1 > COUNTER_MAX or {len(found.quantities), len(found.slots)} != {n}:
        return False
    return all(len(each) in (0, n) for each in (found.requests, found.metadata, found.items, found.persons))


def is_together(payload: bytes) -> bool:
    """Whether an entry has several orders, where nothing else shows it."""
    return payload[:1] == _ARRAY


_ARRAY = msgspec.msgpack.encode([None] * len(_Together.__struct_fields__))[:1]
_NAMES = ("user", "quantity", "slot", "request", "metadata", "item", "person")


def _read_apart(lane: int, entry_id: str, payload: bytes) -> list[Delivery]:
    """Reads each order as if it had an entry of its own."""
    try:
        v, round_, epoch, of_lane, seconds, at_ms, counter, *lists = _any_decoder.decode(payload)
        head = {"v": VERSION, "round": round_, "epoch": epoch, "lane": of_lane, "seconds": seconds, "at_ms": at_ms}
        n = len(lists[0])
        if v != TOGETHER or len(lists) != len(_NAMES) or any(len(each) not in (0, n) for each in lists) or not n:
            raise ValueError("version or lists")
        apart = []
        for place in range(n):
            own = {name: each[place] for name, each in zip(_NAMES, lists, strict=True) if each}
            own = {name: value for name, value in own.items() if value or name not in ("metadata", "item", "person")}
            text = msgspec.json.encode({**head, "counter": counter + place, "request": "", **own})
            one = read_entry(lane, entry_id, text)
            apart.append(Delivery(lane, entry_id, text, one.admission, one.problem, n))
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, ValueError) as error:
        return [Delivery(lane, entry_id, payload, None, f"the entry cannot be read: {error}")]
    return apart


def standing_alone(delivery: Delivery) -> Delivery:
    """Returns an order of a shared entry as if it had an entry of its own, with a unique name."""
    if delivery.of == 1:
        return delivery
    payload = delivery.payload if delivery.admission is None else write_entry(delivery.admission)
    admission = delivery.admission or salvage(delivery.lane, payload)
    own = hashlib.blake2b(payload, digest_size=8).hexdigest() if admission is None else str(admission.number.counter)
    return Delivery(delivery.lane, f"{delivery.entry_id}.{own}", payload, delivery.admission, delivery.problem)


def salvage(lane: int, payload: bytes) -> Admission | None:
    """Reads from another version's entry whose order it is about, if possible: enough to fail the order and to give
    back its unit, which the gate only does for an order that it knows."""
    try:
        fields = _loose_decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return fields.admission() if fields.lane == lane else None
