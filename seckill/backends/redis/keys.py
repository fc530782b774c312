"""Every key that seckill uses in Valkey/Redis. No other module spells one.

    seckill:{k}:round:R    hash    id, lane, epoch, revision, version, status, limit, cool_down_s, begins_ms, ends_ms,
                                   total, available, admitted, released, opened_ms, buyers and past (how many records
                                   there are of each: with fewer, some are lost), sold_out_ms (when the last unit went,
                                   for telling only); and of a share: dealt,
                                   sent:L (units ever sent to lane L), got:L (units ever got from lane L). Of a round
                                   with items: items (their ids, separated by blanks), and of each item I total:I,
                                   dealt:I, available:I, admitted:I, released:I, which together are the round's, and in
                                   the place of the two above sent:L:I and got:L:I. Of a round that shares its limit:
                                   siblings (the other rounds' ids, separated by blanks; all are in this lane)
    seckill:{k}:buyers:R   hash    user → the user's live orders in this round, separated by blanks, each
                                   seconds:counter:quantity:slot:request_id:live (live: 1, or 0 when the order is over);
                                   in a round with items seconds:counter:quantity:slot:item:request_id:live.
                                   If orders of the user are over, a note stands before them, ~units:lapses:lapsed_ms:
                                   the units of all these orders, how many of them the user has cancelled or not paid in
                                   time, and when the last of those ended. Where the limit counts by more than the
                                   user, also a line feed and a person → the users who have bought as that person,
                                   separated by line feeds: no user's name has one in it. Only grows
    seckill:{k}:past:R     hash    request_id user (or seconds:counter user, of an order that had none) → the order that
                                   is over, or several, separated by blanks. It is asked for by request ids only, so a
                                   buyer's record stays short however many of the orders in it have ended. (Of a round
                                   that an earlier version has opened, they stay in the record until the next one ends.)
    seckill:{k}:orders     stream  the lane's admissions that are not settled yet, in entries of one (field `order` and,
                                   of a claim that is traced, `trace`) or of all that one call has admitted (field
                                   `orders`); group `workers`, or `relay` when
                                   RabbitMQ carries the orders
    seckill:{k}:queue      hash    form (2: calls may write entries of several orders; otherwise they do not), more (how
                                   many more orders than entries the stream has)
    seckill:{k}:days       hash    YYYYMMDD → orders admitted in the lane on that UTC day; the order number's counter
    seckill:{k}:home       string  the server that has the lane and the replication id that it has had since it is the
                                   primary, as soon as the keeper has compared it with the ledger (followed by
                                   ` once` until it has done so a second time); only on a cluster and behind
                                   Sentinel, where another server may take its place
    seckill:{k}:copied     string  empty, and written again whenever replicas must have what the lane tells of and
                                   there is nothing to write: a server waits for its replicas after a write only
    seckill:ledger         string  which ledger this gate serves, so that no other takes its rounds for its own
    seckill:format         hash    needs (which format of these keys a version must be able to read), by (the version
                                   that has said so): a version that cannot refuses to start
    seckill:backup         string  the mark of the last backup, which shows it how far the server's file goes; it goes
                                   after a minute
    seckill:{nodes}:seen   zset    every process by when it last said that it is there, in ms
    seckill:{nodes}:all    hash    process → its newest report, as JSON; both go a minute after the last
    seckill:{alarms}:k:told      string  of the messages about trouble k, which was told last; it goes after minutes
    seckill:{alarms}:k:telling   string  which process is telling one; it goes after seconds
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
FORMAT = "seckill:format"
BACKUP = "seckill:backup"
NODES_SEEN = "seckill:{nodes}:seen"
NODES = "seckill:{nodes}:all"
ALARM_TOLD = "seckill:{{alarms}}:{about}:told"
ALARM_TELLING = "seckill:{{alarms}}:{about}:telling"
WORKERS_GROUP = "workers"
RELAY_GROUP = "relay"


_LANES = 256
_SLOTS = 16384


@cache
def tag(lane: int) -> str:
    # 0, 128, 64, 192, 32, …: each lane halves the largest gap left by those before it.
    place = int(f"{lane:08b}"[::-1], 2)
    return next(text for n in count() if slot(text := f"{lane}.{n}") * _LANES // _SLOTS == place)


def slot(text: str) -> int:
    return binascii.crc_hqx(text.encode(), 0) % _SLOTS


class KeyedRound(Protocol):
    """What is needed to find a round's keys."""

    @property
    def id(self) -> int: ...

    @property
    def lane(self) -> int: ...


def round_(ref: KeyedRound) -> str:
    return f"seckill:{{{tag(ref.lane)}}}:round:{ref.id}"


def buyers(ref: KeyedRound) -> str:
    return f"seckill:{{{tag(ref.lane)}}}:buyers:{ref.id}"


def past(ref: KeyedRound) -> str:
    return f"seckill:{{{tag(ref.lane)}}}:past:{ref.id}"


def past_field(user: str, request_id: str, seconds: int, counter: int) -> str:
    """Returns the field of an order in `past`. Neither a request id nor a number contains a blank."""
    return f"{request_id or f'{seconds}:{counter}'} {user}"


def orders(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:orders"


def queue(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:queue"


def days(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:days"


# Added to the value of `home` after the first comparison.
COMPARED_ONCE = " once"


def home(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:home"


def copied(lane: int) -> str:
    return f"seckill:{{{tag(lane)}}}:copied"
