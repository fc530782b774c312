"""The gate on a Valkey or Redis server."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from seckill.domain import Answer, Claim, Holding, Round, RoundRef
from seckill.errors import GateError, GateUnavailable, GateUnclear, StartError
from seckill.gates import keys
from seckill.gates.rights import check_rights
from seckill.gates.server import check_server
from seckill.numbers import OrderNumber
from seckill.outcomes import Outcome
from seckill.ports import Found, GateReply, GateView, Opening, Pulse, Release, Released, ReleaseReply, Update

CONNECT_TIMEOUT_S = 2
# Beyond this callers wait for each other. Claims need one for each round that is on.
CONNECTIONS_MAX = 64
# A rebuild is finished in a later second than it was begun in, at the earliest.
EARLY_S = 0.05
# A reading of all buyers goes in portions, so that neither the server nor the event loop is held up.
BUYERS_PORTION = 1000

_OUTCOMES = {outcome.value.encode(): outcome for outcome in Outcome}
_PULSE = ("version", "available", "admitted", "epoch", "status")
_SCRIPTS = files("seckill.gates") / "lua"


def connect(url: str) -> Redis:
    """A client that never repeats a call by itself: a repeated admission is the buyer's decision, not the library's."""
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            retry_on_error=[],
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            max_connections=CONNECTIONS_MAX,
            timeout=None,  # whoever waits for a connection has a deadline of its own
        )
    except ValueError as error:
        raise StartError(f"SECKILL_REDIS_URL cannot be understood ({error}): use redis://host:port/0.") from error
    return Redis.from_pool(pool)


class Script:
    """One Lua file. Called by its hash; loaded again when the server has forgotten it."""

    def __init__(self, name: str) -> None:
        self.source = (_SCRIPTS / f"{name}.lua").read_text()
        self._sha: str | None = None

    async def call(self, connection: Any, keys_: Sequence[str], args: Sequence[object]) -> Any:
        if self._sha is None:
            self._sha = await self._load(connection)
        try:
            return await _execute(connection, "EVALSHA", self._sha, len(keys_), *keys_, *args)
        except exceptions.NoScriptError:  # nothing was run, so running it now is not a repeat
            self._sha = await self._load(connection)
            return await _execute(connection, "EVALSHA", self._sha, len(keys_), *keys_, *args)

    async def _load(self, connection: Any) -> str:
        sha: bytes = await _execute(connection, "SCRIPT LOAD", self.source)
        return sha.decode()


async def _execute(connection: Any, *command: object) -> Any:
    await connection.send_command(*command)
    return await connection.read_response()


class RedisGate:
    def __init__(self, url: str, *, timeout_s: float, backlog_max: int) -> None:
        # Claims have connections of their own: a crowd that looks at its orders must not hold them up.
        self._claims = connect(url)
        self._client = connect(url)
        self._timeout_s = timeout_s
        self._backlog_max = backlog_max
        self._admit = Script("admit")
        self._open = Script("open_round")
        self._update = Script("update_round")
        self._inspect = Script("inspect")
        self._release = Script("release")
        self._rebuild = Script("rebuild")

    @asynccontextmanager
    async def _connection(self, client: Redis | None = None) -> AsyncIterator[Any]:
        """A connection for one call, with a deadline, and with the library's errors turned into ours.

        Whatever fails before the connection stands has certainly changed nothing. Afterwards a silence or a cut leaves
        it open, while an error reply means that the server refused: our scripts raise before their first write only.
        """
        pool = (client or self._client).connection_pool
        connection = None
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await pool.get_connection()  # type: ignore[no-untyped-call]
                try:
                    yield connection
                except exceptions.ResponseError:
                    raise
                except BaseException:  # a late reply must never reach the next user of this connection
                    await connection.disconnect(nowait=True)
                    raise
        except (TimeoutError, exceptions.TimeoutError, exceptions.ConnectionError, OSError) as error:
            sent = connection is not None and not isinstance(error, exceptions.BusyLoadingError)
            raise (GateUnclear if sent else GateUnavailable)(
                f"The gate does not answer ({type(error).__name__}: {error})."
            ) from error
        except exceptions.ResponseError as error:
            raise GateUnavailable(f"The gate refuses: {error}.") from error
        finally:
            if connection is not None:
                await pool.release(connection)

    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        args: list[object] = [self._backlog_max]
        for claim in claims:
            args += (claim.user, claim.quantity, claim.request_id)
        keys_ = (keys.round_(ref), keys.buyers(ref), keys.orders(ref.lane), keys.days(ref.lane))
        async with self._connection(self._claims) as connection:
            reply = await self._admit.call(connection, keys_, args)
        answers = [
            Answer(_OUTCOMES[outcome], _holdings(ref.lane, holdings) if holdings else ())
            for outcome, holdings in zip(reply[3::2], reply[4::2], strict=True)
        ]
        available = None if reply[2] == b"" else reply[2]
        return GateReply(now_ms=reply[0], version=reply[1], available=available, answers=answers)

    async def open_round(self, round_: Round) -> Opening:
        r = round_
        args = (r.id, r.lane, r.epoch, r.total, r.limit_per_buyer, r.begins_ms, r.ends_ms)
        async with self._connection() as connection:
            reply = await self._open.call(connection, (keys.round_(r.ref), keys.buyers(r.ref)), args)
        return Opening(Found(reply[0].decode()), reply[1])

    async def update_round(self, round_: Round) -> Update:
        assert round_.opened_ms is not None, "open it first"
        r = round_
        args = (r.epoch, r.revision, r.status, r.limit_per_buyer, r.begins_ms, r.ends_ms, r.total, r.opened_ms)
        async with self._connection() as connection:
            reply = await self._update.call(connection, (keys.round_(r.ref),), args)
        return Update(reply.decode())

    async def release(self, ref: RoundRef, releases: Sequence[Release]) -> ReleaseReply:
        args: list[object] = []
        for release in releases:
            args += (release.user, f"{release.number.seconds}:{release.number.counter}", release.epoch)
        async with self._connection() as connection:
            reply = await self._release.call(connection, (keys.round_(ref), keys.buyers(ref)), args)
        return ReleaseReply(reply[0], [Released(result.decode()) for result in reply[1:]])

    async def fence(self, round_: Round) -> None:
        await self._rebuild_step(round_.ref, "fence", round_.epoch)

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        r = round_
        args = (r.id, r.lane, r.epoch, r.total, r.limit_per_buyer, r.begins_ms, r.ends_ms, token)
        return bool((await self._rebuild_step(r.ref, "begin", *args))[0] == b"done")

    async def fill(self, ref: RoundRef, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        records = [part for user, held in holdings.items() for part in (user, " ".join(map(_written, held)))]
        return bool((await self._rebuild_step(ref, "fill", token, *records))[0] == b"done")

    async def finish_rebuild(self, ref: RoundRef, token: str, admitted: int, released: int) -> int | None:
        while True:
            word, opened_ms = await self._rebuild_step(ref, "finish", token, admitted, released)
            if word != b"early":
                return int(opened_ms) if word == b"done" else None
            await asyncio.sleep(EARLY_S)

    async def _rebuild_step(self, ref: RoundRef, *args: object) -> Any:
        async with self._connection() as connection:
            return await self._rebuild.call(connection, (keys.round_(ref), keys.buyers(ref)), args)

    async def forget(self, ref: RoundRef) -> None:
        async with self._connection() as connection:
            await _execute(connection, "UNLINK", keys.round_(ref), keys.buyers(ref))

    async def inspect(self, ref: RoundRef) -> GateView | None:
        async with self._connection() as connection:
            reply = await self._inspect.call(
                connection, (keys.round_(ref), keys.buyers(ref), keys.orders(ref.lane)), ()
            )
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
            **{name: int(values[name]) for name in counts},
        )

    async def pulses(self, refs: Sequence[RoundRef]) -> tuple[int, list[Pulse | None]]:
        async with self._connection() as connection:
            commands = [
                ("TIME",),
                *(("HMGET", keys.round_(ref), *_PULSE) for ref in refs),
            ]
            time, *rows = await _pipeline(connection, commands)
        now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
        return now_ms, [None if row[0] is None or row[4] == b"preparing" else Pulse(*map(int, row[:4])) for row in rows]

    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...]]:
        if not refs:
            return []
        async with self._connection() as connection:
            rows = await _pipeline(connection, [("HGET", keys.buyers(ref), user) for ref in refs])
        return [_holdings(ref.lane, row) if row else () for ref, row in zip(refs, rows, strict=True)]

    async def buyers(self, ref: RoundRef) -> AsyncIterator[Sequence[str]]:
        cursor = b"0"
        while True:
            async with self._connection() as connection:
                reply = await _execute(connection, "HSCAN", keys.buyers(ref), cursor, "COUNT", BUYERS_PORTION)
            cursor, pairs = reply
            yield [user.decode() for user in pairs[::2]]
            if int(cursor) == 0:
                return

    async def check(self, durability: str) -> None:
        try:
            async with self._connection() as connection:
                info = await _execute(connection, "INFO", "everything")
                try:
                    fsync = await _execute(connection, "CONFIG GET", "appendfsync")
                except exceptions.ResponseError:  # managed servers hide it; what cannot be seen cannot be judged
                    fsync = None
                await check_rights(partial(_execute, connection))
        except GateError as error:
            remedy = "start it, or mend SECKILL_REDIS_URL"
            raise StartError(
                f"Valkey/Redis at {self._where()} cannot be used ({error.__cause__}): {remedy}."
            ) from error
        check_server(info, fsync, durability)

    async def bind(self, ledger: str) -> None:
        async with self._connection() as connection:
            await _execute(connection, "SET", keys.LEDGER, ledger, "NX")
            bound = await _execute(connection, "GET", keys.LEDGER)
        if bound.decode() != ledger:
            raise StartError(
                f"Valkey/Redis at {self._where()} holds the rounds of another database: use another one for this "
                "database (with `seckill up`: another --data), or go back to the old database."
            )

    def _where(self) -> str:
        facts = self._client.connection_pool.connection_kwargs
        return str(facts.get("path") or f"{facts.get('host')}:{facts.get('port')}")

    async def ping(self) -> None:
        async with self._connection() as connection:
            await _execute(connection, "PING")

    async def close(self) -> None:
        await self._claims.aclose()
        await self._client.aclose()


async def _pipeline(connection: Any, commands: Sequence[tuple[object, ...]]) -> list[Any]:
    await connection.send_packed_command(connection.pack_commands(commands))
    replies = []
    refused: exceptions.ResponseError | None = None
    for _ in commands:  # all of them, also after an error, or the rest would be the next caller's
        try:
            replies.append(await connection.read_response())
        except exceptions.ResponseError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    return replies


def _written(held: Holding) -> str:
    number = held.number
    return f"{number.seconds}:{number.counter}:{held.quantity}:{held.slot}:{held.request_id}:{int(held.live)}"


def _holdings(lane: int, record: bytes) -> tuple[Holding, ...]:
    return tuple([_holding(lane, order) for order in record.decode().split(" ")])


def _holding(lane: int, order: str) -> Holding:
    seconds, counter, quantity, slot, request_id, live = order.split(":")
    return Holding(OrderNumber(int(seconds), lane, int(counter)), int(quantity), int(slot), request_id, live == "1")
