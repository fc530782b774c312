"""Reads the hashes of a round's buyers and of orders that are over. `keys.py` describes their form."""

from msgspec import structs

from seckill.backends.redis import keys
from seckill.domain.admission import Holding, Record
from seckill.domain.order_number import OrderNumber

_NOTE = "~"  # a record begins with it if some of its buyer's orders are over


def is_person(field: bytes) -> bool:
    """Whether a field of the buyers' hash belongs to a person: its value is not orders, but the users who have bought
    as that person."""
    return field.startswith(b"\n")


def bought_as(orders: tuple[Holding, ...], person: str) -> tuple[Holding, ...]:
    return tuple(structs.replace(held, person=person) for held in orders)


def past_field(user: str, held: Holding) -> str:
    return keys.past_field(user, held.request_id, held.number.seconds, held.number.counter)


def write_record(record: Record) -> str:
    note = [f"{_NOTE}{record.units_over}:{record.lapses}:{record.lapsed_ms}"] if record.units_over else []
    return " ".join([*note, *map(write_order, record.live)])


def write_order(held: Holding) -> str:
    number = held.number
    item = f"{held.item}:" if held.item else ""
    return f"{number.seconds}:{number.counter}:{held.quantity}:{held.slot}:{item}{held.request_id}:{int(held.live)}"


def read_orders(lane: int, record: bytes) -> tuple[Holding, ...]:
    """Reads the orders of a buyer's record or of a field of `past`. Raises ValueError if it is neither."""
    return tuple([_read_order(lane, order) for order in record.decode().split() if not order.startswith(_NOTE)])


def readable_orders(lane: int, record: bytes) -> tuple[Holding, ...]:
    try:
        return read_orders(lane, record)
    except ValueError:  # not an order; the auditor names it
        return ()


def _read_order(lane: int, order: str) -> Holding:
    seconds, counter, quantity, slot, *item, request_id, live = order.split(":")
    number = OrderNumber(int(seconds), lane, int(counter))
    if not item:
        return Holding(number, int(quantity), int(slot), request_id, live == "1")
    return Holding(number, int(quantity), int(slot), request_id, live == "1", item=int(*item))
