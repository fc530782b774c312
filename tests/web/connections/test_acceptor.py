"""All waiting clients are let in within a few turns of the event loop, and those that are not are told why."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import ip_network
from typing import Any, cast

import pytest
import uvloop

from seckill.settings import Settings
from seckill.web.connections import acceptor as module
from seckill.web.connections.acceptor import Acceptor
from seckill.web.connections.connection_limits import ADDRESS_CROWDED, NODE_CROWDED, ConnectionPlaces, Room
from seckill.web.connections.listening_socket import bind
from seckill.web.incidents import Incidents
from seckill.web.requests.client_address import ClientAddresses
from tests.patience import PATIENCE_S

WAITING = 300
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


class Guest(asyncio.Protocol):
    """A client that was let in."""

    leave: Callable[[], None]

    def __init__(self, house: list["Guest"]) -> None:
        self.house = house

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.house.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()


def on(loop: str, main: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:

        async def within() -> None:
            async with asyncio.timeout(PATIENCE_S):
                await main()

        runner.run(within())


@contextlib.contextmanager
def crowd(listener: socket.socket, count: int, words: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connects that many clients, none of which has been let in yet."""
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=PATIENCE_S))
            client.sendall(words)
            clients.append(client)
        yield clients


def opened(listener: socket.socket, house: list[Guest], places: ConnectionPlaces) -> Acceptor:
    made = Acceptor(listener, cast(Any, lambda: Guest(house)), places, Incidents(), lambda: None, list)
    made.start()
    return made


def places(in_all: int = 10_000, per_address: int = 10_000, *trusted: str) -> ConnectionPlaces:
    addresses = ClientAddresses([ip_network(network) for network in trusted])
    return ConnectionPlaces(Room(in_all, per_address, reserve=64), addresses)


async def turns_until(condition: Callable[[], bool]) -> int:
    turns = 0
    while not condition():
        await asyncio.sleep(0)
        turns += 1
    return turns


@pytest.mark.parametrize("loop", LOOPS)
def test_all_waiting_clients_are_let_in_within_a_few_turns(loop: str) -> None:
    async def main() -> None:
        house: list[Guest] = []
        with contextlib.closing(bind("127.0.0.1", 0)) as listener, crowd(listener, WAITING):
            acceptor = opened(listener, house, places())
            assert await turns_until(lambda: len(house) == WAITING) < WAITING / 10
            acceptor.close()

    on(loop, main)


def test_control_uvloops_own_way_takes_a_turn_for_each() -> None:
    async def main() -> None:
        house: list[Guest] = []
        with contextlib.closing(bind("127.0.0.1", 0)) as listener, crowd(listener, WAITING):

            def guest() -> Guest:
                made = Guest(house)
                made.leave = lambda: None
                return made

            server = await asyncio.get_running_loop().create_server(guest, sock=listener)
            assert await turns_until(lambda: len(house) == WAITING) >= WAITING
            server.close()

    on("uvloop", main)


def test_those_who_are_in_wait_for_a_limited_number_of_newcomers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ACCEPTED_PER_TURN_MAX", 7)

    async def main() -> None:
        house: list[Guest] = []
        with contextlib.closing(bind("127.0.0.1", 0)) as listener, crowd(listener, 50):
            acceptor = opened(listener, house, places())
            in_a_turn = [0]
            while len(house) < 50:
                before = len(house)
                await asyncio.sleep(0)
                in_a_turn.append(len(house) - before)
            assert 1 < max(in_a_turn) <= 7
            acceptor.close()

    on("uvloop", main)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("status", "room"), [(429, (100, 3)), (503, (3, 3))])
def test_who_comes_when_it_is_full_is_told_so_whatever_they_have_sent(
    loop: str, status: int, room: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing with something unread would reset the connection, and the answer with it."""
    monkeypatch.setattr(module, "LINGER_S", 0.2)

    async def main() -> None:
        house: list[Guest] = []
        with contextlib.closing(bind("127.0.0.1", 0)) as listener, crowd(listener, 9, b"x" * 5000) as clients:
            taken = places(*room)
            acceptor = opened(listener, house, taken)
            for client in clients[3:]:
                answer = await asyncio.to_thread(read_all, client)
                head, _, body = answer.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 %d " % status)
                assert b"\r\nretry-after: " in head
                assert b"\r\nconnection: close" in head
                assert b'"code": "too_many_connections"' in body
            assert (len(house), taken.taken) == (3, 3)
            house[0].transport.close()
            await turns_until(lambda: taken.taken == 2)
            with crowd(listener, 1):
                await turns_until(lambda: len(house) == 4)
            acceptor.close()

    on(loop, main)


def read_all(client: socket.socket) -> bytes:
    answer = b""
    while part := client.recv(4096):
        answer += part
    return answer


def test_who_is_turned_away_keeps_no_more_files_than_the_reserve_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER_S", 60.0)

    async def main() -> None:
        with contextlib.closing(bind("127.0.0.1", 0)) as listener, crowd(listener, 200) as clients:
            acceptor = opened(listener, [], places(0))
            for client in clients:
                assert (await asyncio.to_thread(read_all, client)).startswith(b"HTTP/1.1 503 ")
            assert len(acceptor._leaving) == 32
            acceptor.close()
            assert not acceptor._leaving

    on("uvloop", main)


def test_clients_on_their_way_in_are_waited_for() -> None:
    async def main() -> None:
        house: list[Guest] = []
        with contextlib.closing(bind("127.0.0.1", 0)) as listener, crowd(listener, 50):
            acceptor = opened(listener, house, places())
            await turns_until(lambda: bool(acceptor._arriving))
            acceptor.close()
            await acceptor.wait_closed()
            assert len(house) == 50

    on("uvloop", main)


def test_without_files_it_rests_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Exhausted(socket.socket):
        left = 3

        def accept(self) -> Any:
            if self.left:
                self.left -= 1
                raise OSError(24, "Too many open files")
            return super().accept()

    monkeypatch.setattr(module, "REST_S", 0.01)

    async def main() -> None:
        house: list[Guest] = []
        plain = bind("127.0.0.1", 0)
        with contextlib.closing(Exhausted(fileno=plain.detach())) as listener, crowd(listener, 5):
            acceptor = opened(listener, house, places())
            while len(house) < 5:
                await asyncio.sleep(0.01)
            acceptor.close()

    on("uvloop", main)


def test_an_address_has_its_share_and_a_proxy_of_ours_has_none() -> None:
    taken = places(100, 2, "10.0.0.0/8", "::1")
    for host in ("192.0.2.1", "2001:db8::1"):
        assert callable(taken.take(host))
        leave = taken.take(host)
        assert callable(leave)
        assert taken.take(host) is ADDRESS_CROWDED
        leave()
        assert callable(taken.take(host))
    assert taken.take("2001:db8::2") is ADDRESS_CROWDED, "the same /64"
    assert taken.take("::ffff:192.0.2.1") is ADDRESS_CROWDED, "the same address, otherwise written"
    assert callable(taken.take("2001:db8:0:1::1"))
    for _ in range(20):
        assert callable(taken.take("10.1.2.3"))
        assert callable(taken.take("::1"))
    while not isinstance(taken.take("10.1.2.3"), type(NODE_CROWDED)):
        pass
    assert taken.taken == 100
    assert taken.take("198.51.100.1") is NODE_CROWDED


def test_the_room_is_below_what_the_system_allows() -> None:
    assert Room.of(Settings(), 256) == Room(192, 48, 64)
    assert Room.of(Settings(), 65_536) == Room(50_000, 12_500, 512)
    assert Room.of(Settings(connections_max=1000, connections_per_address=5000), 65_536) == Room(1000, 1000, 512)
    assert Room.of(Settings(connections_per_address=7), 1024) == Room(768, 7, 256)
