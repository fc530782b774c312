"""One process of the crowd: `python -m seckill.lab.rehearsal.sender`, told what to do by lines on its input.

Visitors come at their times, whether or not those before them were answered, so a slow server has more of them at a
time, as in a real sale. A visitor's wait is counted from the moment of coming.
"""

import asyncio
import contextlib
import itertools
import random
import resource
import secrets
import ssl
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec

from seckill.http_reply import HttpReply
from seckill.lab.bench.tokens import Tokens
from seckill.lab.rehearsal.crowd import arrivals
from seckill.lab.rehearsal.sender_messages import PhaseOrders, PhaseSeen, SenderOrders, note
from seckill.settings import Secret

ANSWER_WITHIN_S = 10.0
# After the last visitor of a phase, those who still wait for an answer get this long.
GRACE_S = ANSWER_WITHIN_S
# The API closes a connection that was idle for 15 s.
IDLE_S_MAX = 10.0
POLL_S = 5
# Requests under way besides presses, such as streams that visitors watch. More of them are left out.
BESIDE_MAX = 2_000

# Headers as browsers send them: a proxy has to read them all.
BROWSERS = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
    "Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36",
)
BOT = "python-requests/2.32.3"


class NoReply(Exception):
    """Raised with a word for what went wrong."""


class Connection(asyncio.Protocol):
    """Sends one request at a time."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.used_s = 0.0
        self.read = 0  # bytes
        self._reply: HttpReply | None = None
        self._until: Callable[[HttpReply], bool] = lambda reply: reply.is_done
        self._waiter: asyncio.Future[HttpReply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.read += len(data)
        if self._reply is None or self._waiter is None or self._waiter.done():
            return
        try:
            self._reply.feed(data)
        except (httptools.HttpParserError, ConnectionResetError):
            self._waiter.set_exception(NoReply("unreadable"))
            return
        if self._until(self._reply):
            self._waiter.set_result(self._reply)

    def connection_lost(self, _: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(NoReply("cut off"))

    async def ask(self, request: bytes, until: Callable[[HttpReply], bool] | None = None) -> HttpReply:
        """Returns the answer when it is complete, or when `until` says that enough of it is there."""
        self._reply = HttpReply()
        self._until = until or (lambda reply: reply.is_done)
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        self.transport.write(request)
        too_late = loop.call_later(ANSWER_WITHIN_S, self._give_up)
        try:
            reply = await self._waiter
        finally:
            too_late.cancel()
        self.used_s = time.monotonic()
        return reply

    def _give_up(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(NoReply("too late"))
        self.transport.abort()

    @property
    def is_fresh(self) -> bool:
        return not self.transport.is_closing() and time.monotonic() - self.used_s < IDLE_S_MAX


class SenderSite:
    """The connections to the deployment."""

    def __init__(self, url: str, connections_max: int) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._host = address.hostname
        secure = address.scheme == "https"
        self._port = address.port or (443 if secure else 80)
        self._tls = ssl.create_default_context() if secure else None
        self.host_header = address.netloc.rpartition("@")[2]
        self.prefix = address.path.rstrip("/")
        self.origin = f"{address.scheme}://{self.host_header}"
        self._max = connections_max
        self._idle: list[Connection] = []
        self.open = 0
        self.bytes_in = 0
        self.bytes_out = 0

    async def ask(self, request: bytes, until: Callable[[HttpReply], bool] | None = None) -> HttpReply:
        connection = self._used() or await self._connect()
        before = connection.read
        self.bytes_out += len(request)
        keeps = False
        try:
            reply = await connection.ask(request, until)
            keeps = reply.is_done and reply.keeps_alive
            return reply
        finally:
            self.bytes_in += connection.read - before
            if keeps:
                self._idle.append(connection)
            else:
                self.open -= 1
                connection.transport.abort()

    def _used(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh:
                return connection
            self.open -= 1
            connection.transport.abort()
        return None

    async def _connect(self) -> Connection:
        if self.open >= self._max:
            raise NoReply("no connection left here")
        self.open += 1
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection, self._host, self._port, ssl=self._tls
                )
                return connection
        except TimeoutError:
            self.open -= 1
            raise NoReply("no connection in time") from None
        except OSError as error:
            self.open -= 1
            raise NoReply("no file or port left here" if _is_ours(error) else "connection refused") from error
        except BaseException:
            self.open -= 1
            raise

    def close(self) -> None:
        for connection in self._idle:
            connection.transport.abort()
        self._idle.clear()


def _is_ours(error: OSError) -> bool:
    """Whether this side has run out of files or of ports to call from."""
    return error.errno in (24, 23, 99)  # EMFILE, ENFILE, EADDRNOTAVAIL


class Visitors:
    """The buyers of one sender, one after the other, each with a different token."""

    def __init__(self, orders: SenderOrders) -> None:
        own = range(orders.number, orders.buyers, orders.senders)
        self._numbers = iter(own)
        self._given = orders.tokens
        self._ready: deque[tuple[int, str]] = deque()
        self._name = orders.run
        self._tokens = Tokens(Secret(orders.secret), orders.claims) if orders.secret else None

    def expect(self, many: float) -> None:
        """Makes the tokens before the crowd comes: doing it later would take CPU time from the deployment if that is on
        the same machine."""
        while len(self._ready) < many and (visitor := self._made()) is not None:
            self._ready.append(visitor)

    def next(self) -> tuple[int, str] | None:
        return self._ready.popleft() if self._ready else self._made()

    def _made(self) -> tuple[int, str] | None:
        number = next(self._numbers, None)
        if number is None:
            return None
        if self._tokens is None:
            return (number, self._given[number]) if number < len(self._given) else None
        return number, self._tokens.of(f"{self._name}-{number}")


class Sender:
    def __init__(self, orders: SenderOrders) -> None:
        self._orders = orders
        self._habits = orders.habits
        self._site = SenderSite(orders.url, orders.connections_max)
        self._visitors = Visitors(orders)
        self._dice = random.Random(f"{orders.run} {orders.number}")  # noqa: S311 (chance, not a secret)
        self._keys = itertools.count()
        self._key = secrets.token_hex(6)
        self._pressing: set[asyncio.Task[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._seen = PhaseSeen()
        self._began_s = 0.0

    async def play(self, orders: PhaseOrders) -> PhaseSeen:
        """Lets the visitors of a phase come, and waits until those who pressed were answered."""
        self._seen = seen = PhaseSeen(connections=self._site.open)
        self._site.bytes_in = self._site.bytes_out = 0
        self._visitors.expect(orders.phase.presses / self._habits.presses_per_visit)
        await asyncio.sleep(max(0.0, orders.begins_s - time.time()))
        self._began_s = began_s = time.monotonic()
        cpu_s = time.process_time()
        for due_s in arrivals(orders.phase, self._dice, self._habits):
            wait_s = began_s + due_s - time.monotonic()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            elif seen.visits % 32 == 0:
                await asyncio.sleep(0)  # late visitors must not keep answers waiting, too
            visitor = self._visitors.next()
            if visitor is None:
                seen.out_of_buyers = True
                break
            seen.visits += 1
            note(seen.late, max(0.0, time.monotonic() - began_s - due_s))
            self._start(self._pressing, self._visit(visitor, began_s + due_s))
        used_s, lasted_s = time.process_time() - cpu_s, time.monotonic() - began_s
        if self._pressing:
            await asyncio.wait(self._pressing, timeout=GRACE_S + 1)
        seen.took_s = time.monotonic() - began_s
        seen.cpu = [used_s / max(lasted_s, 0.001)]
        seen.bytes_in, seen.bytes_out = self._site.bytes_in, self._site.bytes_out
        return seen

    def _start(self, tasks: set[asyncio.Task[None]], work: Any) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _visit(self, visitor: tuple[int, str], came_s: float) -> None:
        number, token = visitor
        if self._dice.random() < self._habits.bots:
            for _ in range(self._habits.bot_presses):
                await self._press(number, token, self._fresh_key(), BOT, came_s)
                came_s = time.monotonic()
            return
        browser = BROWSERS[number % len(BROWSERS)]
        if self._dice.random() < self._habits.looks:
            self._start(self._beside, self._look(token, browser))
        key = self._fresh_key()
        order_id = await self._press(number, token, key, browser, came_s)
        if order_id is not None and self._dice.random() < self._habits.repeats:
            await self._press(number, token, key, browser, time.monotonic())
        if order_id is not None and len(self._beside) < BESIDE_MAX:
            fate = self._dice.random()
            if fate < self._habits.polls + self._habits.streams:
                self._start(self._beside, self._follow(order_id, token, browser, streams=fate < self._habits.streams))

    async def _press(self, number: int, token: str, key: str, browser: str, came_s: float) -> str | None:
        """Returns the order's id, if there is one."""
        seen = self._seen
        seen.pressed += 1
        path = f"/v1/sales/{self._orders.sale_id}/orders"
        more = f"Idempotency-Key: {key}\r\nX-Forwarded-For: {_address(number)}\r\nContent-Type: application/json\r\n"
        order_id = None
        try:
            reply = await self._site.ask(self._request("POST", path, token, browser, more, b'{"quantity":1}'))
        except NoReply as error:
            outcome = str(error)
        else:
            answered_s = time.monotonic()
            note(seen.waits, answered_s - came_s)
            second = int(answered_s - self._began_s)
            seen.by_second.extend([0] * (second + 1 - len(seen.by_second)))
            seen.by_second[second] += 1
            outcome, order_id = _read(reply)
        seen.outcomes[outcome] = seen.outcomes.get(outcome, 0) + 1
        seen.connections = max(seen.connections, self._site.open)
        return order_id

    async def _look(self, token: str, browser: str) -> None:
        self._seen.looked += 1
        await self._beside_press("GET", f"/v1/sales/{self._orders.sale_id}", token, browser)

    async def _follow(self, order_id: str, token: str, browser: str, *, streams: bool) -> None:
        self._seen.watched += 1
        path = f"/v1/orders/{order_id}"
        if streams:
            await self._stream(f"{path}/events", token, browser)
        else:
            await self._beside_press("GET", f"{path}?wait={POLL_S}&seen=queued", token, browser)
        if self._orders.pays and self._dice.random() < self._habits.pays:
            await asyncio.sleep(self._dice.expovariate(1 / self._habits.think_s))
            self._seen.paid += await self._beside_press("POST", f"{path}/pay", token, browser)

    async def _beside_press(self, method: str, path: str, token: str, browser: str) -> bool:
        with contextlib.suppress(NoReply):
            reply = await self._site.ask(self._request(method, path, token, browser))
            if reply.status < 400:
                return True
        self._seen.failed_beside += 1
        return False

    async def _stream(self, path: str, token: str, browser: str) -> None:
        request = self._request("GET", path, token, browser, "Accept: text/event-stream\r\n")
        leaves_s = time.monotonic() + self._habits.stream_s

        def enough(reply: HttpReply) -> bool:
            # A visitor who has seen the order's state and stayed for a while closes the connection.
            return reply.is_done or (bool(reply.body) and time.monotonic() >= leaves_s) or reply.status >= 400

        try:
            async with asyncio.timeout(self._habits.stream_s):
                await self._site.ask(request, enough)
        except TimeoutError:
            return  # the visitor stayed as long as planned
        except NoReply:
            self._seen.failed_beside += 1

    def _request(self, method: str, path: str, token: str, browser: str, more: str = "", body: bytes = b"") -> bytes:
        site = self._site
        return (
            f"{method} {site.prefix}{path} HTTP/1.1\r\nHost: {site.host_header}\r\nUser-Agent: {browser}\r\n"
            "Accept-Language: zh-CN,zh;q=0.9,en;q=0.8\r\nAccept-Encoding: gzip, deflate, br\r\n"
            f"Referer: {site.origin}{site.prefix}/sales/{self._orders.sale_id}\r\n"
            f"Sec-Fetch-Mode: cors\r\nSec-Fetch-Site: same-origin\r\nAuthorization: Bearer {token}\r\n{more}"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    def _fresh_key(self) -> str:
        return f"{self._key}{next(self._keys):x}"

    async def close(self) -> None:
        """Closes all connections, also those of visitors who are still watching."""
        left = [*self._pressing, *self._beside]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._site.close()


def _address(number: int) -> str:
    """Makes an address in the range for tests of networks (RFC 2544). The deployment believes it only if this machine
    is a trusted proxy, and then counts every buyer as a different address."""
    return f"198.{18 + (number >> 16) % 2}.{(number >> 8) % 256}.{number % 256}"


def _read(reply: HttpReply) -> tuple[str, str | None]:
    if reply.status in (201, 202):
        with contextlib.suppress(msgspec.DecodeError, KeyError, TypeError):
            return "accepted", str(msgspec.json.decode(bytes(reply.body))["order_id"])
    with contextlib.suppress(msgspec.DecodeError, TypeError, AttributeError):
        return str(msgspec.json.decode(bytes(reply.body)).get("code", reply.status)), None
    return f"http {reply.status}", None  # from a proxy, which does not use our problem codes


def _lines() -> Iterator[str]:
    while line := sys.stdin.readline():
        yield line


async def main() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    lines = _lines()
    sender = Sender(msgspec.json.decode(next(lines), type=SenderOrders))
    try:
        while line := await asyncio.to_thread(next, lines, ""):
            seen = await sender.play(msgspec.json.decode(line, type=PhaseOrders))
            sys.stdout.write(msgspec.json.encode(seen).decode() + "\n")
            sys.stdout.flush()
    finally:
        await sender.close()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())
