"""Every key that seckill uses in Valkey/Redis. No other module spells one.

    seckill:{k}:round:R    hash    id, lane, epoch, revision, version, status, limit, begins_ms, ends_ms,
                                   total, available, admitted, released, opened_ms; and of a share: dealt,
                                   sent:L (units ever sent to lane L), got:L (units ever got from lane L)
    seckill:{k}:buyers:R   hash    user → the user's orders in this round, separated by blanks, each
                                   seconds:counter:quantity:slot:request_id:live (live: 1, or 0 when the order is over)
    seckill:{k}:orders     stream  one entry for each admission of the lane that is not settled yet; group `workers`,
                                   or `relay` when RabbitMQ carries the orders
    seckill:{k}:days       hash    YYYYMMDD → orders admitted in the lane on that UTC day; the order number's counter
    seckill:{k}:home       string  the server that has the lane, once the keeper has compared it with the ledger; only
                                   on a cluster and behind Sentinel, where another server may take its place
    seckill:ledger         string  which ledger this gate serves, so that no other takes its rounds for the own ones
    seckill:{nodes}:seen   zset    every process by when it last said that it is there, in ms
    seckill:{nodes}:all    hash    process → its newest report, as JSON; both go a minute after the last
    seckill:states         channel order states as they are committed, for everyone who waits
    seckill:versions       channel versions of rounds whose units came back, for nodes that refuse as sold out

`{k}` is the lane's tag: on a cluster, all keys of a lane are in one slot and one script may touch them all. It is the
lane's number and a second one, which puts the lanes in slots that are far from each other: 16 lanes, or any other
number of them, are shared evenly by primaries that share the slots evenly, and so are sales, which take lanes in their
order.
"""

import binascii
from functools import cache
from itertools import count
from typing import Protocol

STATES_CHANNEL = "seckill:states"
VERSIONS_CHANNEL = "seckill:versions"
LEDGER = "seckill:ledger"
NODES_SEEN = "seckill:{nodes}:seen"
NODES = "seckill:{nodes}:all"
WORKERS_GROUP = "workers"
RELAY_GROUP = "relay"


_LANES = 256
_SLOTS = 16384


@cache
def tag(lane: int) -> str:
    # 0, 128, 64, 192, 32, …: each lane halves the largest gap that those before it have left.
    place = int(f"{lane:08b}"[::-1], 2)
    return next(text for n in count() if slot(text := f"{lane}.{n}") * _LANES // _SLOTS == place)


def slot(text: str) -> int:
    return binascii.crc_hqx(text.encode(), 0) % _SLOTS


class RoundRef(Protocol):
    """Enough to find a round's keys."""

    @property
    def id(self) -> int: ...

    @property
    def lane(self) -> int: ...


def round_(ref: RoundRef) -> str:
    return f"seckill:{{{tag(ref.lane)}}}:round:{ref.id}"


def buyers(ref: RoundRef) -> str:
    return f"seckill:{{{tag(ref.lane)}}}:buyers:{ref.id}"


def orders(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:orders"


def days(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:days"


def home(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:home"
