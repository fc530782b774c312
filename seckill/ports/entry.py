"""What a queue entry looks like, on every transport."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from seckill.domain.admission import Admission
from seckill.domain.goods import METADATA_BYTES_MAX
from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import COUNTER_MAX, OrderNumber
from seckill.domain.sale import QUANTITY_MAX
from seckill.ports.transport import Delivery

VERSION = 1
_INT_MAX = (1 << 31) - 1
_EXACT_MAX = (1 << 53) - 1  # no gate counts further, and every database can hold it


class _Fields(msgspec.Struct, omit_defaults=True):
    """What a gate writes. Bounded: what no gate can have written must not get as far as a database."""

    v: int
    round: Annotated[int, Meta(ge=1, le=_EXACT_MAX)]
    epoch: Annotated[int, Meta(ge=0, le=_INT_MAX)]
    lane: Annotated[int, Meta(ge=0, le=255)]
    seconds: Annotated[int, Meta(ge=0, le=_INT_MAX)]
    at_ms: Annotated[int, Meta(ge=0, le=_EXACT_MAX)]
    counter: Annotated[int, Meta(ge=0, le=COUNTER_MAX)]
    quantity: Annotated[int, Meta(ge=1, le=QUANTITY_MAX)]
    slot: Annotated[int, Meta(ge=1, le=_INT_MAX)]
    user: Annotated[str, Meta(max_length=128)]
    request: Annotated[str, Meta(max_length=64)]
    metadata: Annotated[str, Meta(max_length=METADATA_BYTES_MAX)] = ""  # not there: the claim had none
    item: Annotated[int, Meta(ge=0, le=_EXACT_MAX)] = NO_ITEM  # not there: the sale has none
    person: Annotated[str, Meta(max_length=128)] = ""  # not there: the limit counts by user

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


_decoder = msgspec.json.Decoder(_Entry)
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


def read_entry(lane: int, entry_id: str, payload: bytes) -> Delivery:
    """Never raises: an entry that cannot be understood says why, and keeps its text."""
    try:
        entry = _decoder.decode(payload)
        if entry.metadata:
            _object_decoder.decode(entry.metadata)  # or nobody could be shown the order
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Delivery(lane, entry_id, payload, None, f"the entry cannot be read: {error}")
    if entry.v != VERSION or entry.lane != lane:
        problem = f"version {entry.v}, lane {entry.lane}: not an entry of this version and lane"
        return Delivery(lane, entry_id, payload, None, problem)
    return Delivery(lane, entry_id, payload, entry.admission())


def salvage(lane: int, payload: bytes) -> Admission | None:
    """Whose order an entry of another version is about, if it still says so: enough to fail it and to give back its
    unit, which the gate does only for an order that it knows."""
    try:
        fields = _loose_decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return fields.admission() if fields.lane == lane else None
