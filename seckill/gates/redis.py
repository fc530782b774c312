"""The gate on a Valkey or Redis server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from redis import exceptions

from seckill.domain import Answer, Claim, Holding, Round, RoundRef
from seckill.errors import GateError, GateUnavailable, GateUnclear, StartError
from seckill.gates import keys
from seckill.gates.clients import Server, Servers
from seckill.gates.clients import connect as connect  # part of what this module offers
from seckill.gates.connections import Line, execute, open_servers, pipeline
from seckill.gates.scripts import Script
from seckill.gates.server import check_servers
from seckill.numbers import ORIGIN_S, OrderNumber
from seckill.outcomes import Outcome
from seckill.ports import Found, GateReply, GateView, Opening, Pulse, Release, Released, ReleaseReply, Update
from seckill.share_ports import NOTHING_CARRIED, Carried

T = TypeVar("T")

# Replicas get this part of the time that a call has to tell that they have an order; the rest is for their number to
# come back.
REPLICAS_SHARE = 0.8
# More than a lane admits in a second, and few of the 16 million that a lane has for a day.
NUMBERS_PASSED_OVER = 65_536
# A rebuild is finished in a later second than it was begun in, at the earliest.
EARLY_S = 0.05
# A reading of all buyers goes in portions, so that neither the server nor the event loop is held up.
BUYERS_PORTION = 1000

# Who gets one of these is told of an order.
_FOR_ORDERS = {outcome.value.encode() for outcome in (Outcome.ADMITTED, Outcome.REPEATED)}
_OUTCOMES = {outcome.value.encode(): outcome for outcome in Outcome}
_pack = msgspec.msgpack.Encoder().encode
_PULSE = ("version", "available", "admitted", "epoch", "revision", "status")


class RedisGate:
    """`replica_acks`: so many replicas have an order before it is answered."""

    def __init__(self, url: str, *, timeout_s: float, backlog_max: int, replica_acks: int = 0) -> None:
        # Claims have connections of their own: a crowd that looks at its orders must not hold them up.
        self._claims = open_servers(url)
        self._servers = open_servers(url)
        self._timeout_s = timeout_s
        self._backlog_max = backlog_max
        self._replica_acks = replica_acks
        # Lane → the server that the keeper has vouched for, as long as no server has taken the place of another.
        self._vouched: dict[int, tuple[str, int]] = {}
        self._admit = Script("admit")
        self._open = Script("open_round")
        self._update = Script("update_round")
        self._inspect = Script("inspect")
        self._release = Script("release")
        self._rebuild = Script("rebuild")
        self._give = Script("give")
        self._take = Script("take")

    async def _call(self, key: str, call: Callable[[Line], Awaitable[T]], servers: Servers | None = None) -> T:
        """One call to the server that has the key, with a deadline, and with the library's errors turned into ours.

        Whatever fails before the connection stands has certainly changed nothing. Afterwards a silence or a cut leaves
        it open, while an error reply means that the server refused: our scripts raise before their first write only.
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
                return await (servers or self._servers).follow(key, once, asks=True)
        except (TimeoutError, exceptions.TimeoutError, exceptions.ConnectionError, OSError) as error:
            unclear = sent and not isinstance(error, exceptions.BusyLoadingError)
            raise (GateUnclear if unclear else GateUnavailable)(
                f"The gate does not answer ({type(error).__name__}: {error})."
            ) from error
        except exceptions.ResponseError as error:
            raise GateUnavailable(f"The gate refuses: {error}.") from error

    async def _run(self, script: Script, keys_: Sequence[str], args: Sequence[object]) -> Any:
        return await self._call(keys_[0], lambda line: script.call(line, keys_, args))

    async def _one(self, key: str, *command: object) -> Any:
        return await self._call(key, lambda line: execute(line, *command))

    async def _read(self, wanted: Sequence[tuple[str, Sequence[object]]]) -> list[Any]:
        """Replies to commands that change nothing, each from the server that has its key."""
        replies: list[Any] = [None] * len(wanted)

        async def read(group: Sequence[int]) -> None:
            commands = [wanted[i][1] for i in group]
            found = await self._call(wanted[group[0]][0], lambda line: pipeline(line, commands))
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
        args = (
            self._backlog_max,
            _pack([claim.user for claim in claims]),
            _pack([claim.quantity for claim in claims]),
            _pack([claim.request_id for claim in claims]),
        )
        keys_ = (keys.round_(ref), keys.buyers(ref), keys.orders(ref.lane), keys.days(ref.lane))
        reply = await self._call(keys_[0], lambda line: self._admit_at(line, ref.lane, keys_, args), self._claims)
        seconds = reply[0] // 1000 - ORIGIN_S
        answers = [
            _admitted(claim, seconds, ref.lane, holdings)
            if outcome == b"admitted"
            else Answer(_OUTCOMES[outcome], _holdings(ref.lane, holdings) if holdings else ())
            for claim, outcome, holdings in zip(claims, reply[3::2], reply[4::2], strict=True)
        ]
        available = None if reply[2] == b"" else reply[2]
        return GateReply(now_ms=reply[0], version=reply[1], available=available, answers=answers)

    async def _admit_at(self, line: Line, lane: int, keys_: Sequence[str], args: Sequence[object]) -> Any:
        reply, short = await self._copied(line, lane, self._admit, keys_, args)
        if short and _FOR_ORDERS.intersection(reply[3::2]):
            raise GateUnclear(short)
        return reply

    async def _copied(
        self, line: Line, lane: int, script: Script, keys_: Sequence[str], args: Sequence[object]
    ) -> tuple[Any, str]:
        """The reply, and a complaint if not as many replicas have it as there should be."""
        await self._must_be_home(line, lane)
        if not self._replica_acks:
            return await script.call(line, keys_, args), ""
        # The server waits for what this connection has seen, so a repeated claim waits for its order as well.
        wait = ("WAIT", self._replica_acks, int(self._timeout_s * REPLICAS_SHARE * 1000))
        reply, copies = await script.call_and(line, keys_, args, wait)
        if isinstance(copies, Exception) or copies < self._replica_acks:
            return reply, f"Of {self._replica_acks} replicas, these have it: {copies}."
        return reply, ""

    async def _must_be_home(self, line: Line, lane: int) -> None:
        """Another server than before may lack the newest orders: nobody is admitted until the keeper has looked."""
        name = line.server.name
        vouched = (name, self._servers.changes)
        if not name or self._vouched.get(lane) == vouched:
            return
        home = await execute(line, "GET", keys.home(lane))
        if home is None:  # then no round was ever opened here, as the script will say
            return
        if home.decode() != name:
            raise GateUnavailable("The gate's data is on another server now, which the keeper has to compare first.")
        self._vouched[lane] = vouched

    async def moved_lanes(self, lanes: Collection[int]) -> dict[int, str]:
        if self._servers.lasting:
            return {}
        found: dict[int, str] = {}

        async def look(lane: int) -> None:
            async def read(line: Line) -> tuple[str, bytes | None]:
                return line.server.name, await execute(line, "GET", keys.home(lane))

            with contextlib.suppress(GateError):  # what cannot be compared now holds up no other
                name, home = await self._call(keys.home(lane), read)
                if home is None or home.decode() != name:
                    found[lane] = name

        await asyncio.gather(*map(look, lanes))
        return found

    async def vouch(self, lane: int, server: str) -> None:
        async def vouch(line: Line) -> None:
            if line.server.name != server:  # it has moved on meanwhile, and has to be compared again
                return
            seconds, _ = await execute(line, "TIME")
            today = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y%m%d")
            # The server before may have given out numbers, in this very second, that are not known here.
            passed_over = ("HINCRBY", keys.days(lane), today, NUMBERS_PASSED_OVER)
            await pipeline(line, [passed_over, ("SET", keys.home(lane), server)])

        await self._call(keys.home(lane), vouch)

    async def _settle_in(self, lane: int) -> None:
        """Notes where a lane is before there is anything in it, so that whoever has its rounds has the note, too."""
        if not self._servers.lasting:
            key = keys.home(lane)
            await self._call(key, lambda line: execute(line, "SET", key, line.server.name, "NX"))

    async def open_round(self, round_: Round, opened_ms: int = 0) -> Opening:
        r = round_
        args = (r.id, r.lane, r.epoch, r.total, r.limit_per_buyer, r.begins_ms, r.ends_ms, opened_ms)
        await self._settle_in(r.lane)
        reply = await self._run(self._open, (keys.round_(r.ref), keys.buyers(r.ref)), args)
        return Opening(Found(reply[0].decode()), reply[1])

    async def update_round(self, round_: Round) -> Update:
        assert round_.opened_ms is not None, "open it first"
        r = round_
        args = (r.epoch, r.revision, r.status, r.limit_per_buyer, r.begins_ms, r.ends_ms, r.total, r.opened_ms)
        reply = await self._run(self._update, (keys.round_(r.ref),), args)
        return Update(reply.decode())

    async def release(self, ref: RoundRef, releases: Sequence[Release]) -> ReleaseReply:
        args: list[object] = []
        for release in releases:
            args += (release.user, f"{release.number.seconds}:{release.number.counter}", release.epoch)
        reply = await self._run(self._release, (keys.round_(ref), keys.buyers(ref)), args)
        return ReleaseReply(reply[0], [Released(result.decode()) for result in reply[1:]])

    async def fence(self, round_: Round) -> None:
        await self._rebuild_step(round_.ref, "fence", round_.epoch)

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        r = round_
        args = (r.id, r.lane, r.epoch, r.total, r.limit_per_buyer, r.begins_ms, r.ends_ms, token)
        await self._settle_in(r.lane)
        return bool((await self._rebuild_step(r.ref, "begin", *args))[0] == b"done")

    async def fill(self, ref: RoundRef, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        records = [part for user, held in holdings.items() for part in (user, " ".join(map(_written, held)))]
        return bool((await self._rebuild_step(ref, "fill", token, *records))[0] == b"done")

    async def finish_rebuild(
        self,
        ref: RoundRef,
        token: str,
        admitted: int,
        released: int,
        opened_ms: int = 0,
        carried: Carried = NOTHING_CARRIED,
    ) -> int | None:
        args: list[object] = [token, admitted, released, opened_ms, carried.units]
        for name, units in (("sent", carried.sent), ("got", carried.got)):
            args += [part for lane, n in units.items() for part in (f"{name}:{lane}", n)]
        while True:
            word, noted_ms = await self._rebuild_step(ref, "finish", *args)
            if word != b"early":
                return int(noted_ms) if word == b"done" else None
            await asyncio.sleep(EARLY_S)

    async def _rebuild_step(self, ref: RoundRef, *args: object) -> Any:
        return await self._run(self._rebuild, (keys.round_(ref), keys.buyers(ref)), args)

    async def give(self, ref: RoundRef, epoch: int, to: int, sent: int, units: int) -> int | None:
        return await self._carry(self._give, ref, epoch, to, sent, units)

    async def take(self, ref: RoundRef, epoch: int, origin: int, sent: int) -> int | None:
        return await self._carry(self._take, ref, epoch, origin, sent)

    async def _carry(self, script: Script, ref: RoundRef, *args: object) -> int | None:
        keys_ = (keys.round_(ref),)
        units, short = await self._call(
            keys_[0], lambda line: self._copied(line, ref.lane, script, keys_, args), self._claims
        )
        if short:  # a replica that takes over would have the units twice
            raise GateUnclear(short)
        return None if units < 0 else int(units)

    async def forget(self, ref: RoundRef) -> None:
        key = keys.round_(ref)
        await self._one(key, "UNLINK", key, keys.buyers(ref))

    async def inspect(self, ref: RoundRef) -> GateView | None:
        reply = await self._run(self._inspect, (keys.round_(ref), keys.buyers(ref), keys.orders(ref.lane)), ())
        now_ms, buyers, backlog, *pairs = reply
        if not pairs:
            return None
        values = {name.decode(): value.decode() for name, value in zip(pairs[::2], pairs[1::2], strict=True)}
        counts = (
            "total",
            "available",
            "admitted",
            "released",
            "begins_ms",
            "ends_ms",
            "epoch",
            "version",
            "revision",
        )
        return GateView(
            now_ms=now_ms,
            buyers=buyers,
            backlog=backlog,
            status=values["status"],
            limit_per_buyer=int(values["limit"]),
            dealt=int(values.get("dealt", values["total"])),
            sent=_by_lane("sent:", values),
            got=_by_lane("got:", values),
            **{name: int(values[name]) for name in counts},
        )

    async def pulses(self, refs: Sequence[RoundRef]) -> tuple[int, list[Pulse | None]]:
        first = keys.round_(refs[0]) if refs else keys.LEDGER  # any server's time will do
        time, *rows = await self._read(
            [(first, ("TIME",)), *((key, ("HMGET", key, *_PULSE)) for key in map(keys.round_, refs))]
        )
        now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
        return now_ms, [None if row[0] is None or row[5] == b"preparing" else Pulse(*map(int, row[:5])) for row in rows]

    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...]]:
        rows = await self._read([(key, ("HGET", key, user)) for key in map(keys.buyers, refs)])
        return [_holdings(ref.lane, row) if row else () for ref, row in zip(refs, rows, strict=True)]

    async def records(self, ref: RoundRef, users: Sequence[str]) -> list[tuple[Holding, ...]]:
        key = keys.buyers(ref)
        rows = await self._one(key, "HMGET", key, *users) if users else []
        return [_holdings(ref.lane, row) if row else () for row in rows]

    async def buyers(self, ref: RoundRef) -> AsyncIterator[Sequence[str]]:
        key = keys.buyers(ref)
        cursor = b"0"
        while True:
            cursor, pairs = await self._one(key, "HSCAN", key, cursor, "COUNT", BUYERS_PORTION)
            yield [user.decode() for user in pairs[::2]]
            if int(cursor) == 0:
                return

    async def check(self, durability: str) -> list[str]:
        return await check_servers(self._servers, durability, self._replica_acks, self._timeout_s)

    async def bind(self, ledger: str) -> None:
        async def bind(line: Line) -> Any:
            await execute(line, "SET", keys.LEDGER, ledger, "NX")
            return await execute(line, "GET", keys.LEDGER)

        if (await self._call(keys.LEDGER, bind)).decode() != ledger:
            raise StartError(
                f"Valkey/Redis at {self._servers.where} holds the rounds of another database: use another one for this "
                "database (with `seckill up`: another --data), or go back to the old database."
            )

    async def ping(self) -> None:
        await self._one(keys.LEDGER, "PING")

    async def close(self) -> None:
        await self._claims.close()
        await self._servers.close()


def _by_lane(prefix: str, values: Mapping[str, str]) -> dict[int, int]:
    return {int(name.removeprefix(prefix)): int(n) for name, n in values.items() if name.startswith(prefix)}


def _written(held: Holding) -> str:
    number = held.number
    return f"{number.seconds}:{number.counter}:{held.quantity}:{held.slot}:{held.request_id}:{int(held.live)}"


def _admitted(claim: Claim, seconds: int, lane: int, order: bytes) -> Answer:
    """Counter and slot are all that the caller does not know of a new order. To read the rest takes as long again."""
    _, counter, _, slot, _ = order.split(b":", 4)
    held = Holding(OrderNumber(seconds, lane, int(counter)), claim.quantity, int(slot), claim.request_id, live=True)
    return Answer(Outcome.ADMITTED, (held,))


def _holdings(lane: int, record: bytes) -> tuple[Holding, ...]:
    return tuple([_holding(lane, order) for order in record.decode().split(" ")])


def _holding(lane: int, order: str) -> Holding:
    seconds, counter, quantity, slot, request_id, live = order.split(":")
    return Holding(OrderNumber(int(seconds), lane, int(counter)), int(quantity), int(slot), request_id, live == "1")
