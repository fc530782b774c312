"""Reads the hash of a round. Lost fields and damaged ones are treated alike: if a number is missing, the round does not
exist until the keeper has rebuilt it."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from redis import exceptions

from seckill.ports.gate import GateStatus, GateView, ItemView, Pulse

_PULSE = ("version", "available", "admitted", "epoch", "revision")
# The other fields of every round.
_RULES = ("total", "dealt", "released", "limit", "cool_down_s", "begins_ms", "ends_ms", "opened_ms", "id", "lane")
# The counts of records. An earlier version did not count them.
_RECORDS = ("buyers", "past")
PULSE_FIELDS = ("status", *_PULSE, *_RULES, *_RECORDS, "items")
# The fields of each item, whose names end in its number. Their sums over all items are the round's own.
_OF_ITEM = ("total", "dealt", "available", "admitted", "released")

_STATUSES = frozenset(GateStatus)
# With more digits, Lua could not tell a number from its neighbour. A rebuilt round's version is its epoch followed by
# nine digits.
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_EPOCH = re.compile(r"[0-9]{1,6}")
_MOVED = re.compile(r"(?:sent|got):[0-9]{1,3}(?::[0-9]{1,18})?")
_ITEMS = re.compile(r"[0-9]{1,18}(?: [0-9]{1,18})*")


def is_wrong_type(reply: object) -> bool:
    """Whether the reply is the server's error for a key with a value of another type than we ever write there."""
    return isinstance(reply, exceptions.ResponseError) and "WRONGTYPE" in str(reply)


def texts(names: Sequence[bytes | str], values: Sequence[bytes | None]) -> dict[str, str]:
    """Decodes the values, whatever bytes they contain."""
    return {
        name if isinstance(name, str) else name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in zip(names, values, strict=True)
        if value is not None
    }


def damaged_fields(values: Mapping[str, str]) -> Iterator[str]:
    """Yields the fields that exist but do not contain what a gate writes."""
    for name, value in values.items():
        if not _is_what_belongs_there(name, value):
            yield name


def _is_what_belongs_there(name: str, value: str) -> bool:
    if name == "status":
        return value in _STATUSES
    if name == "epoch":
        return _EPOCH.fullmatch(value) is not None
    if name in ("items", "siblings"):
        return _ITEMS.fullmatch(value) is not None
    if name.startswith(("sent:", "got:")):
        return bool(_MOVED.fullmatch(name) and _NUMBER.fullmatch(value))
    count, _, item = name.partition(":")
    return (count not in _OF_ITEM if item else name not in PULSE_FIELDS) or _NUMBER.fullmatch(value) is not None


def _is_sound(values: Mapping[str, str]) -> bool:
    return values.keys() >= {"status", *_PULSE, *_RULES} and not any(damaged_fields(values))


def _items_add_up(values: Mapping[str, str]) -> bool:
    items = _items(values)
    if not items:
        return True
    if not values.keys() >= {f"{count}:{item}" for count in _OF_ITEM for item in items}:
        return False
    return all(sum(int(values[f"{count}:{item}"]) for item in items) == int(values[count]) for count in _OF_ITEM)


def _items(values: Mapping[str, str]) -> list[int]:
    return [int(item) for item in values.get("items", "").split()]


def item_fields(fields: Sequence[bytes | None] | exceptions.ResponseError) -> list[str]:
    """Given the `PULSE_FIELDS` of a round, returns the further fields to read: those of its items, if it has any."""
    named = None if isinstance(fields, exceptions.ResponseError) else fields[-1]
    if named is None or not _ITEMS.fullmatch(named.decode(errors="replace")):
        return []
    return [f"{count}:{item}" for item in named.decode().split() for count in _OF_ITEM]


def read_pulse(
    fields: Sequence[bytes | None] | exceptions.ResponseError, *records: object, of_items: Sequence[str] = ()
) -> Pulse | None:
    """Makes a pulse of the `PULSE_FIELDS`, the number of buyers and the number of records in `past`. For a round with
    items the `item_fields` belong to it too; without them the pulse is of the round alone."""
    if isinstance(fields, exceptions.ResponseError):
        return None
    values = texts((*PULSE_FIELDS, *of_items), fields)
    least = _least(values)
    if least is None or not _are_all(records, least):
        return None
    if of_items and not _items_add_up(values):
        return None
    items = {item: int(values[f"available:{item}"]) for item in _items(values)} if of_items else {}
    return Pulse(**{name: int(values[name]) for name in _PULSE}, items=items)


def is_whole(fields: tuple[bytes | None, ...], *records: object) -> bool:
    """Whether these fields make a pulse, that is, everything that the gate has noted is still there."""
    least = _least_of(fields)
    return least is not None and _are_all(records, least)


@lru_cache(1024)  # most rounds have not changed since the last look
def _least_of(fields: tuple[bytes | None, ...]) -> tuple[int, int] | None:
    return _least(texts(PULSE_FIELDS, fields))


def _least(values: Mapping[str, str]) -> tuple[int, int] | None:
    """Returns how many buyers and ended orders there must be, or None if this is not a round that sells or has sold."""
    if not _is_sound(values) or values["status"] == GateStatus.PREPARING:
        return None
    return _counted(values)


def read_view(now_ms: int, buyers: int, past: int, backlog: int, values: Mapping[str, str]) -> GateView | None:
    """`buyers`, `past`, `backlog`: their numbers, or −1 if there is a foreign value under the key."""
    # A round that is being rebuilt has no opening yet.
    if not _is_sound({"opened_ms": "0"} | dict(values)) or not _items_add_up(values):
        return None
    items = {item: _read_item(item, values) for item in _items(values)}
    sent, got = _by_lane("sent:", values), _by_lane("got:", values)
    # A share that has forgotten which units it sent or got would send or get them again.
    adds_up = int(values["total"]) == int(values["dealt"]) - sum(sent.values()) + sum(got.values())
    adds_up = adds_up and all(item.adds_up for item in items.values())
    return GateView(
        now_ms=now_ms,
        buyers=max(0, buyers),
        backlog=max(0, backlog),
        status=GateStatus(values["status"]),
        limit_per_buyer=int(values["limit"]),
        sent=sent,
        got=got,
        sold_out_ms=_told(values.get("sold_out_ms")),
        whole=adds_up and _are_all((buyers, past), _counted(values)),
        items=items,
        **{name: int(values[name]) for name in (*_PULSE, "total", "dealt", "released", "begins_ms", "ends_ms")},
    )


def _told(text: str | None) -> int | None:
    """Reads a number on which no decision depends: a damaged one counts as lost."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def _counted(values: Mapping[str, str]) -> tuple[int, int]:
    """Returns how many buyers and ended orders were counted. An earlier version did not count them, but every buyer who
    was ever admitted has a record."""
    return int(values.get("buyers", min(1, int(values["admitted"])))), int(values.get("past", 0))


def _are_all(records: Sequence[object], least: Sequence[int]) -> bool:
    return all(isinstance(n, int) and n >= counted for n, counted in zip(records, least, strict=True))


def _read_item(item: int, values: Mapping[str, str]) -> ItemView:
    of_item = {name.removesuffix(f":{item}"): n for name, n in values.items() if name.endswith(f":{item}")}
    counts = {count: int(of_item[count]) for count in _OF_ITEM}
    moved = {name: n for name, n in of_item.items() if name not in counts}
    return ItemView(**counts, sent=_by_lane("sent:", moved), got=_by_lane("got:", moved))


def _by_lane(prefix: str, values: Mapping[str, str]) -> dict[int, int]:
    """Returns the units by lane, summed over all items."""
    units: Counter[int] = Counter()
    for name, n in values.items():
        if name.startswith(prefix):
            units[int(name.split(":")[1])] += int(n)
    return dict(units)
