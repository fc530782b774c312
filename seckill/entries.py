"""What a queue entry looks like, on every transport."""

import msgspec

from seckill.domain import Admission
from seckill.numbers import OrderNumber
from seckill.ports import Delivery

VERSION = 1


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """What a gate writes. Strict: a field too many means that somebody else's version wrote it."""

    v: int
    round: int
    epoch: int
    lane: int
    seconds: int
    at_ms: int
    counter: int
    quantity: int
    slot: int
    user: str
    request: str


_decoder = msgspec.json.Decoder(_Entry)


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
    )
    return msgspec.json.encode(entry)


def read_entry(lane: int, entry_id: str, payload: bytes) -> Delivery:
    """Never raises: an entry that cannot be understood says why, and keeps its text."""
    text = payload.decode(errors="replace")
    try:
        entry = _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Delivery(lane, entry_id, text, None, f"the entry cannot be read: {error}")
    if entry.v != VERSION or entry.lane != lane:
        problem = f"version {entry.v}, lane {entry.lane}: not an entry of this version and lane"
        return Delivery(lane, entry_id, text, None, problem)
    admission = Admission(
        number=OrderNumber(entry.seconds, entry.lane, entry.counter),
        round_id=entry.round,
        epoch=entry.epoch,
        user=entry.user,
        quantity=entry.quantity,
        slot=entry.slot,
        request_id=entry.request,
        admitted_ms=entry.at_ms,
    )
    return Delivery(lane, entry_id, text, admission)
