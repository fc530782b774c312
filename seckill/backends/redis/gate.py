"""The gate on a Valkey or Redis server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from redis import exceptions

from seckill.backends.redis import keys, lane_home
from seckill.backends.redis.admit_reply import NO_ORDERS, item_gone, live_orders, read_admitted, read_answer
from seckill.backends.redis.append_only_file import FileHistory
from seckill.backends.redis.buyer_records import (
    bought_as,
    is_person,
    past_field,
    readable_orders,
    write_order,
    write_record,
)
from seckill.backends.redis.cluster import ON_THE_WAY
from seckill.backends.redis.format_stamp import check_stamp, stamp
from seckill.backends.redis.round_hash import (
    PULSE_FIELDS,
    damaged_fields,
    is_wrong_type,
    item_fields,
    read_pulse,
    read_view,
    texts,
)
from seckill.backends.redis.scripts import Script
from seckill.backends.redis.server_calls import Line, execute, pipeline
from seckill.backends.redis.server_choice import open_servers
from seckill.backends.redis.server_space import server_spaces
from seckill.backends.redis.server_watch import ServerWatch
from seckill.backends.redis.servers import Server, Servers
from seckill.backends.redis.servers import connect as connect  # part of what this module offers
from seckill.backends.redis.suitability import check_servers
from seckill.domain.admission import Claim, Holding, Record
from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import COUNTER_MAX, ORIGIN_S, OrderNumber
from seckill.domain.sale import Round, RoundRef
from seckill.domain.space import Space
from seckill.engine.rounds.opening import FIRST_EPOCH
from seckill.errors import GateError, GateUnavailable, GateUnclear, StartError
from seckill.ports.gate import (
    NO_ITEMS,
    Found,
    GateReply,
    GateView,
    MovedLane,
    Opening,
    Pulse,
    Release,
    Released,
    ReleaseReply,
    Sold,
    Update,
)
from seckill.ports.share_gate import NOTHING_CARRIED, Carried

T = TypeVar("T")

# Replicas get this part of a call's time to confirm an order; the rest is for the reply to arrive.
REPLICAS_SHARE = 0.8
# A rebuild can be finished in a later second than it began in, at the earliest.
EARLY_S = 0.05
# All buyers are read in portions, so that neither the server nor the event loop is held up.
BUYERS_PORTION = 1000
# How many rounds one call looks at: while it lasts, the server admits no one.
HELD_MAX = 100

_item = attrgetter("item")
_MORE = (attrgetter("metadata"), _item, attrgetter("early_ms"), attrgetter("person"), attrgetter("trace"))
_pack = msgspec.msgpack.Encoder().encode
# The keys of a lane besides its rounds, and their types. The counters of the days are numbers.
_OF_LANE = (
    (keys.orders, "stream", "XLEN"),
    (keys.queue, "hash", "HVALS"),
    (keys.days, "hash", "HVALS"),
    (keys.home, "string", "GET"),
)


class RedisGate:
    """`replica_acks`: how many replicas must have an order before its claim is answered."""

    def __init__(self, url: str, *, timeout_s: float, backlog_max: int, replica_acks: int = 0) -> None:
        # Claims have their own connections, so that a crowd looking at its orders does not hold them up.
        self._claims = open_servers(url)
        self._servers = open_servers(url)
        self._timeout_s = timeout_s
        self._backlog_max = backlog_max
        self._replica_acks = replica_acks
        # Round → the latest epoch seen, if it was ever rebuilt.
        self._epochs: dict[int, int] = {}
        self._watch: ServerWatch | None = None  # from the first `check` on
        self._admit = Script("admit")
        self._open = Script("open_round")
        self._update = Script("update_round")
        self._inspect = Script("inspect")
        self._held = Script("held")
        self._release = Script("release")
        self._rebuild = Script("rebuild")
        self._give = Script("share", "give")
        self._take = Script("share", "take")
        self._discard = Script("discard_damage")

    async def _call(self, key: str, call: Callable[[Line], Awaitable[T]], servers: Servers | None = None) -> T:
        """Makes one call to the server that has the key, with a deadline, and turns the library's errors into ours.

        A failure before the connection is established has certainly changed nothing. After that, a timeout or a lost
        connection leaves the outcome unknown, while an error reply means that the server refused: our scripts only
        raise before their first write.
        """
        sent = False

        async def once(server: Server) -> T:
            nonlocal sent
            pool = server.client.connection_pool
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]
            sent = True
            try:
                return await call(Line(connection, server))
            except exceptions.ResponseError:
                sent = False
                raise
            except BaseException:  # a late reply must never reach the next user of this connection
                await connection.disconnect(nowait=True)
                raise
            finally:
                await pool.release(connection)

        try:
            async with asyncio.timeout(self._timeout_s):
                return await (servers or self._servers).follow(key, once)
        except (TimeoutError, exceptions.TimeoutError, exceptions.ConnectionError, OSError) as error:
            unclear = sent and not isinstance(error, exceptions.BusyLoadingError)
            raise (GateUnclear if unclear else GateUnavailable)(
                f"The gate does not answer ({type(error).__name__}: {error})."
            ) from error
        except ON_THE_WAY as error:
            raise GateUnavailable("A part of the gate is on its way to another server of the cluster.") from error
        except exceptions.ResponseError as error:
            raise GateUnavailable(f"The gate refuses: {error}.") from error

    async def _run(self, script: Script, keys_: Sequence[str], args: Sequence[object]) -> Any:
        return await self._call(keys_[0], lambda line: script.call(line, keys_, args))

    async def _one(self, key: str, *command: object) -> Any:
        return await self._call(key, lambda line: execute(line, *command))

    async def _read(self, wanted: Sequence[tuple[str, Sequence[object]]]) -> list[Any]:
        """Returns replies to read-only commands, each from the server that has its key. For a key of the wrong type the
        error is returned, not raised, since it concerns that key alone."""
        replies: list[Any] = [None] * len(wanted)

        async def read(group: Sequence[int]) -> None:
            commands = [wanted[i][1] for i in group]
            found = await self._call(wanted[group[0]][0], lambda line: pipeline(line, commands, given=is_wrong_type))
            for i, reply in zip(group, found, strict=True):
                replies[i] = reply

        try:
            async with asyncio.timeout(self._timeout_s):
                groups = await self._servers.grouped([key for key, _ in wanted])
        except (TimeoutError, exceptions.RedisError, OSError) as error:
            raise GateUnavailable(f"The gate does not answer ({type(error).__name__}: {error}).") from error
        if len(groups) == 1:
            await read(groups[0])
        else:
            await asyncio.gather(*map(read, groups))
        return replies

    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        args: tuple[object, ...] = (
            self._backlog_max,
            _pack([claim.user for claim in claims]),
            _pack([claim.quantity for claim in claims]),
            _pack([claim.request_id for claim in claims]),
            self._epochs.get(ref.id, FIRST_EPOCH),
        )
        # Arguments that no claim has are left out, unless another one follows.
        given = [any(map(each, claims)) for each in _MORE]
        items = given[_MORE.index(_item)]
        args += tuple(_pack(list(map(each, claims))) for i, each in enumerate(_MORE) if any(given[i:]))
        of_lane = (keys.orders(ref.lane), keys.days(ref.lane))
        keys_ = (keys.round_(ref), keys.buyers(ref), *of_lane, keys.past(ref), keys.queue(ref.lane))
        reply = await self._call(keys_[0], lambda line: self._admit_at(line, ref.lane, keys_, args), self._claims)
        seconds = reply[0] // 1000 - ORIGIN_S
        answers = [
            read_admitted(claim, seconds, ref.lane, holdings)
            if outcome == b"admitted"
            else read_answer(claim, ref.lane, outcome, holdings)
            for claim, outcome, holdings in zip(claims, reply[3::2], reply[4::2], strict=True)
        ]
        available = None if reply[2] == b"" else reply[2]
        gone = item_gone(claims, reply[3::2], reply[4::2]) if items else frozenset[int]()
        return GateReply(now_ms=reply[0], version=reply[1], available=available, answers=answers, gone=gone)

    async def _admit_at(self, line: Line, lane: int, keys_: Sequence[str], args: Sequence[object]) -> Any:
        await self._may_admit(line, lane)
        if not self._replica_acks:
            return await self._admit.call(line, keys_, args)
        reply, copies = await self._admit.call_and(line, keys_, args, self._wait())
        if any(told for outcome, told in zip(reply[3::2], reply[4::2], strict=True) if outcome not in NO_ORDERS):
            # One of the answers tells a buyer about an order.
            if b"admitted" not in reply[3::2]:  # of an earlier one only: nothing was written, so nothing was waited for
                self._require(*await line.send(self._write_and_wait(lane)))
            self._require(copies)
        return reply

    def _wait(self) -> tuple[object, ...]:
        """Makes the server wait until replicas have this connection's last write, and so everything that any connection
        wrote before it. For a connection that has written nothing the server does not wait at all."""
        return "WAIT", self._replica_acks, int(self._timeout_s * REPLICAS_SHARE * 1000)

    def _write_and_wait(self, lane: int) -> tuple[Sequence[object], ...]:
        return ("SET", keys.copied(lane), ""), self._wait()

    def _require(self, *replies: object) -> None:
        """Checks the last reply, which is that of `WAIT`. After an error it is unknown what it has waited for."""
        for reply in replies:
            if isinstance(reply, Exception):
                raise GateUnclear(f"It is not known whether a replica has it: {reply}.")
        copies = replies[-1]
        if not isinstance(copies, int) or copies < self._replica_acks:
            raise GateUnclear(f"Of {self._replica_acks} replicas, these have it: {copies}.")

    async def standing(self, lanes: Collection[int]) -> Mapping[int, str]:
        if not self._replica_acks or not lanes:
            return {}

        async def ask(lane: int) -> str:
            return (await self._call(keys.home(lane), lambda line: lane_home.read(line, lane)))[0]

        # If all lanes are on one server, one of them speaks for all.
        asked = list(lanes)[:1] if self._servers.together else list(lanes)
        found = await asyncio.gather(*map(ask, asked))
        return dict.fromkeys(lanes, found[0]) if self._servers.together else dict(zip(asked, found, strict=True))

    async def assure(self, lanes: Collection[int], standing: Mapping[int, str]) -> None:
        if not self._replica_acks:
            return

        async def assure(lane: int) -> None:
            async def call(line: Line) -> None:
                self._require(*await line.send(self._write_and_wait(lane)))
                reign, _ = await lane_home.read(line, lane)
                # another server than the one that was read answers only for its own data
                if reign != standing.get(lane):
                    raise GateUnclear("Another server has taken over meanwhile.")

            await self._call(keys.copied(lane), call)

        await asyncio.gather(*map(assure, lanes))

    async def _may_admit(self, line: Line, lane: int) -> None:
        if self._watch is not None:
            await self._watch.require(line)
        await lane_home.require(line, lane, self._servers)

    async def moved_lanes(self, lanes: Collection[int]) -> dict[int, MovedLane]:
        if self._servers.lasting:
            return {}
        found: dict[int, MovedLane] = {}

        async def look(lane: int) -> None:
            with contextlib.suppress(GateError):  # a lane that cannot be compared now must not hold up the others
                reign, home = await self._call(keys.home(lane), lambda line: lane_home.read(line, lane))
                if home != reign:
                    found[lane] = MovedLane(reign, compared=home == reign + keys.COMPARED_ONCE)

        await asyncio.gather(*map(look, lanes))
        return found

    async def vouch(self, lane: int, server: str, *, for_good: bool) -> None:
        await self._call(keys.home(lane), lambda line: lane_home.vouch(line, lane, server, for_good=for_good))

    async def _settle_in(self, lane: int) -> None:
        if not self._servers.lasting:
            await self._call(keys.home(lane), lambda line: lane_home.settle_in(line, lane))

    async def open_round(self, round_: Round, opened_ms: int = 0) -> Opening:
        r = round_
        args = (r.id, r.lane, r.epoch, r.total, r.limit_per_buyer, r.begins_ms, r.ends_ms, opened_ms, r.cool_down_s)
        await self._settle_in(r.lane)
        reply = await self._run(self._open, _keys(r.ref), (*args, _siblings(r), *_units_of_items(r)))
        return Opening(Found(reply[0].decode()), reply[1])

    async def update_round(self, round_: Round) -> Update:
        assert round_.opened_ms is not None, "open it first"
        r = round_
        args = (r.epoch, r.revision, r.gate_word, r.limit_per_buyer, r.begins_ms, r.ends_ms, r.total, r.opened_ms)
        reply = await self._run(self._update, (keys.round_(r.ref),), (*args, r.cool_down_s, *_units_of_items(r)))
        return Update(reply.decode())

    async def release(self, ref: RoundRef, releases: Sequence[Release]) -> ReleaseReply:
        args: list[object] = []
        for release in releases:
            order = f"{release.number.seconds}:{release.number.counter}"
            args += (release.user, order, release.epoch, release.request_id, int(release.lapsed))
        reply = await self._run(self._release, _keys(ref), args)
        return ReleaseReply(reply[0], [Released(result.decode()) for result in reply[1:]])

    async def fence(self, round_: Round) -> None:
        await self._rebuild_step(round_.ref, "fence", round_.epoch)

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        r = round_
        args = (r.id, r.lane, r.epoch, r.total, r.limit_per_buyer, r.begins_ms, r.ends_ms, token, r.cool_down_s)
        await self._settle_in(r.lane)
        begun = await self._rebuild_step(r.ref, "begin", *args, _siblings(r), *_units_of_items(r))
        return bool(begun[0] == b"done")

    async def fill(self, ref: RoundRef, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        now_ms, _ = await self.pulses([ref])
        records = [part for user, held in holdings.items() for part in (user, write_record(Record.of(held, now_ms)))]
        past: dict[str, list[str]] = {}
        for user, held in holdings.items():
            for holding in held:
                if not holding.live:
                    past.setdefault(past_field(user, holding), []).append(write_order(holding))
        over = [part for field, orders in past.items() for part in (field, " ".join(orders))]
        if people := {(held.person, user) for user, mine in holdings.items() for held in mine if held.person}:
            over += ["", *(part for pair in sorted(people) for part in pair)]
        return bool((await self._rebuild_step(ref, "fill", token, len(holdings), *records, *over))[0] == b"done")

    async def finish_rebuild(
        self,
        ref: RoundRef,
        token: str,
        admitted: int,
        released: int,
        items: Mapping[int, Sold] = NO_ITEMS,
        opened_ms: int = 0,
        carried: Carried = NOTHING_CARRIED,
    ) -> int | None:
        args: list[object] = [token, admitted, released, opened_ms, carried.units, len(items)]
        for item, sold in items.items():
            args += [item, sold.admitted, sold.released, carried.items.get(item, NOTHING_CARRIED).units]
        args += _moved(carried, "")
        for item, of_item in carried.items.items():
            args += _moved(of_item, f":{item}")
        while True:
            word, noted_ms = await self._rebuild_step(ref, "finish", *args)
            if word != b"early":
                return int(noted_ms) if word == b"done" else None
            await asyncio.sleep(EARLY_S)

    async def _rebuild_step(self, ref: RoundRef, *args: object) -> Any:
        return await self._run(self._rebuild, _keys(ref), args)

    async def give(self, ref: RoundRef, epoch: int, to: int, sent: int, units: int, item: int = NO_ITEM) -> int | None:
        return await self._carry(self._give, ref, item, epoch, to, sent, units)

    async def take(self, ref: RoundRef, epoch: int, origin: int, sent: int, item: int = NO_ITEM) -> int | None:
        return await self._carry(self._take, ref, item, epoch, origin, sent)

    async def _carry(self, script: Script, ref: RoundRef, item: int, *args: object) -> int | None:
        keys_ = (keys.round_(ref),)
        if item:
            args = (*args, item)

        async def carry(line: Line) -> int:
            await self._may_admit(line, ref.lane)
            if not self._replica_acks:
                return int(await script.call(line, keys_, args))
            units, *replies = await script.call_and(line, keys_, args, *self._write_and_wait(ref.lane))
            self._require(*replies)  # otherwise the units would exist twice if a replica took over
            return int(units)

        units = await self._call(keys_[0], carry, self._claims)
        return None if units < 0 else units

    async def forget(self, ref: RoundRef) -> None:
        self._epochs.pop(ref.id, None)
        await self._one(keys.round_(ref), "UNLINK", *_keys(ref))

    async def inspect(self, ref: RoundRef) -> GateView | None:
        (now_ms, _, buyers, past, backlog), values = await self._look(ref)
        view = read_view(now_ms, buyers, past, backlog, values)
        if view is not None:
            self._note_epoch(ref, view.epoch)
        return view

    async def _look(self, ref: RoundRef) -> tuple[list[int], dict[str, str]]:
        reply = await self._run(self._inspect, (*_keys(ref), keys.orders(ref.lane), keys.queue(ref.lane)), ())
        return reply[:5], texts(reply[5::2], reply[6::2])

    async def damage(self, ref: RoundRef) -> Sequence[str]:
        (_, *sizes, _), values = await self._look(ref)
        wrong = [f"{key} is not a hash" for key, size in zip(_keys(ref), sizes, strict=True) if size < 0]
        return wrong + [f"{keys.round_(ref)} has something else as its {name}" for name in damaged_fields(values)]

    async def discard_damage(self, lanes: Collection[int]) -> Sequence[str]:
        looks = [(make(lane), type_, command) for lane in lanes for make, type_, command in _OF_LANE]
        replies = await self._read([(key, (command, key)) for key, _, command in looks])
        discarded = []
        for (key, type_, _), reply in zip(looks, replies, strict=True):
            garbled = isinstance(reply, list) and not all(map(_is_counter, reply))
            if (garbled or is_wrong_type(reply)) and await self._run(self._discard, (key,), (type_,)):
                discarded.append(key)
        return discarded

    async def pulses(self, refs: Sequence[RoundRef]) -> tuple[int, list[Pulse | None]]:
        first = keys.round_(refs[0]) if refs else keys.LEDGER  # any server's time will do
        time, *rows = await self._read([(first, ("TIME",)), *_pulse_commands([(ref, ()) for ref in refs])])
        now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
        pulses = [read_pulse(*replies) for replies in zip(rows[::3], rows[1::3], rows[2::3], strict=True)]
        # Only a round's hash says whether it has items, and which.
        named = [(place, names) for place, fields in enumerate(rows[::3]) if (names := item_fields(fields))]
        rows = await self._read(_pulse_commands([(refs[place], names) for place, names in named])) if named else []
        for (place, names), *replies in zip(named, rows[::3], rows[1::3], rows[2::3], strict=True):
            pulses[place] = read_pulse(*replies, of_items=names)
        for ref, pulse in zip(refs, pulses, strict=True):
            if pulse is not None:
                self._note_epoch(ref, pulse.epoch)
        return now_ms, pulses

    def _note_epoch(self, ref: RoundRef, epoch: int) -> None:
        """Notes the latest epoch of a round. A server that is started again with an older file may have the round as it
        was before its rebuild. The ledger takes no more orders of that epoch, so no buyer may be admitted into it until
        the keeper has noticed."""
        if epoch > self._epochs.get(ref.id, FIRST_EPOCH):
            self._epochs[ref.id] = epoch

    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...] | None]:
        """Takes a call or two, however many sales there are: every buyer who opens the list of their orders asks
        this."""
        found: dict[int, tuple[Holding, ...] | None] = {}

        async def look(places: Sequence[int]) -> None:
            of_rounds = [key for place in places for key in _keys(refs[place])]
            for place, reply in zip(places, await self._run(self._held, of_rounds, (user, *PULSE_FIELDS)), strict=True):
                found[place] = live_orders(refs[place].lane, reply)

        lanes: dict[int, list[int]] = {}
        for place, ref in enumerate(refs):
            lanes.setdefault(0 if self._servers.together else ref.lane, []).append(place)
        await asyncio.gather(*(look(part) for places in lanes.values() for part in _parts(places, HELD_MAX)))
        return [found[place] for place in range(len(refs))]

    async def remembered(
        self, ref: RoundRef, holdings: Mapping[str, Sequence[Holding]]
    ) -> dict[str, dict[OrderNumber, Holding]]:
        """The records first: an order leaves them for the past, never the other way."""
        found: dict[str, dict[OrderNumber, Holding]] = {user: {} for user in holdings}

        async def look(key: str, fields: Sequence[tuple[str, str]]) -> None:
            if not fields:
                return
            (rows,) = await self._read([(key, ("HMGET", key, *[field for _, field in fields]))])
            for (user, _), row in zip(fields, rows, strict=True) if not is_wrong_type(rows) else ():
                found[user] |= {holding.number: holding for holding in readable_orders(ref.lane, row or b"")}

        await look(keys.buyers(ref), [(user, user) for user in holdings])
        missing = [(user, held) for user, mine in holdings.items() for held in mine if held.number not in found[user]]
        await look(keys.past(ref), [(user, past_field(user, held)) for user, held in missing])
        return found

    async def buyers(self, ref: RoundRef) -> AsyncIterator[Sequence[str]]:
        async for portion in self._scan(keys.buyers(ref)):
            yield [user.decode() for user, _ in portion if not is_person(user)]

    async def orders(self, ref: RoundRef) -> AsyncIterator[Mapping[str, Sequence[Holding]]]:
        """The records first: an order leaves them for the past, never the other way."""
        persons = await self._persons(ref)
        async for portion in self._scan(keys.buyers(ref)):
            found = {
                user.decode(): readable_orders(ref.lane, record) for user, record in portion if not is_person(user)
            }
            yield {user: bought_as(held, persons[user]) if user in persons else held for user, held in found.items()}
        async for portion in self._scan(keys.past(ref)):
            found = {}
            for field, orders in portion:
                user = field.decode().partition(" ")[2]
                found[user] = (*found.get(user, ()), *readable_orders(ref.lane, orders))
            yield found

    async def _persons(self, ref: RoundRef) -> dict[str, str]:
        """Returns the person that each user has bought as."""
        (flag,) = await self._read([(keys.round_(ref), ("HGET", keys.round_(ref), "has_persons"))])
        if not isinstance(flag, bytes):
            return {}
        found: dict[str, str] = {}
        async for portion in self._scan(keys.buyers(ref)):
            for person, users in filter(lambda pair: is_person(pair[0]), portion):
                found |= dict.fromkeys(users.decode().split("\n"), person.decode()[1:])
        return found

    async def _scan(self, key: str) -> AsyncIterator[list[tuple[bytes, bytes]]]:
        cursor = b"0"
        while True:
            try:
                cursor, pairs = await self._one(key, "HSCAN", key, cursor, "COUNT", BUYERS_PORTION)
            except GateUnavailable as error:
                if "WRONGTYPE" in str(error):  # so there is no record in it
                    return
                raise
            yield list(zip(pairs[::2], pairs[1::2], strict=True))
            if int(cursor) == 0:
                return

    async def check(self, durability: str) -> list[str]:
        files = FileHistory()
        advice = await check_servers(self._servers, durability, self._replica_acks, self._timeout_s, files)
        self._watch = ServerWatch(self._servers, durability, self._replica_acks, files)
        return advice

    async def watch_servers(self) -> Mapping[str, str]:
        return {} if self._watch is None else await self._watch.look()

    def full_servers(self) -> Collection[str]:
        return () if self._watch is None else self._watch.full()

    async def spaces(self) -> Sequence[Space]:
        try:
            async with asyncio.timeout(self._timeout_s):
                primaries = await self._servers.primaries()
                found = await asyncio.gather(
                    *(server_spaces(server, server.name or self._servers.where) for server in primaries)
                )
        except (TimeoutError, exceptions.RedisError, OSError) as error:
            raise GateUnavailable(f"The gate does not answer ({type(error).__name__}: {error}).") from error
        return [space for spaces in found for space in spaces]

    async def bind(self, ledger: str) -> None:
        async def bind(line: Line) -> Any:
            await execute(line, "SET", keys.LEDGER, ledger, "NX")
            return await execute(line, "GET", keys.LEDGER)

        if (await self._call(keys.LEDGER, bind)).decode() != ledger:
            raise StartError(
                f"Valkey/Redis at {self._servers.where} holds the rounds of another database: use another one for this "
                "database (with `seckill up`: another --data), or go back to the old database."
            )
        check_stamp(await self._call(keys.FORMAT, stamp), self._servers.where)

    async def ping(self) -> None:
        await self._one(keys.LEDGER, "PING")

    async def close(self) -> None:
        await self._claims.close()
        await self._servers.close()


def _parts(places: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    return (places[start : start + most] for start in range(0, len(places), most))


def _keys(ref: RoundRef) -> tuple[str, str, str]:
    return keys.round_(ref), keys.buyers(ref), keys.past(ref)


def _is_counter(value: bytes) -> bool:
    return value.isdigit() and len(value) < 9 and int(value) <= COUNTER_MAX


def _pulse_commands(wanted: Sequence[tuple[RoundRef, Sequence[str]]]) -> list[tuple[str, Sequence[object]]]:
    """Returns three commands for each round, which read these fields besides `PULSE_FIELDS`."""
    commands: list[tuple[str, Sequence[object]]] = []
    for ref, names in wanted:
        key, buyers, past = _keys(ref)
        # The counters are read before the records: records may be added in between, but none is ever removed.
        commands += [(key, ("HMGET", key, *PULSE_FIELDS, *names)), (key, ("HLEN", buyers)), (key, ("HLEN", past))]
    return commands


def _siblings(round_: Round) -> str:
    return " ".join(map(str, round_.siblings))


def _units_of_items(round_: Round) -> list[object]:
    return [part for item in round_.items for part in item]


def _moved(carried: Carried, tail: str) -> list[object]:
    both = (("sent", carried.sent), ("got", carried.got))
    return [part for name, units in both for lane, n in units.items() for part in (f"{name}:{lane}{tail}", n)]
