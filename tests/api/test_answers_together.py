"""The answers to a batch are sent together, each over its own connection, whole and in order, whatever becomes of the
others."""

import asyncio
import errno
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from seckill.native.ring_choice import Ring
from seckill.web.claims.claim_protocol import ClaimingProtocol
from seckill.web.claims.turn_buffer import TurnBuffer
from tests.api.conftest import Served
from tests.api.test_short_way import connected, read, request, slow_gate
from tests.native.rings import OneByOne
from tests.patience import PATIENCE_S

__all__ = ["slow_gate"]
BUYERS = 20


class NotedRing:
    """Notes how many answers share a call. A number of bytes: no more than these of each are sent at once."""

    def __init__(self, bytes_max: int | None = None) -> None:
        self.calls: list[int] = []
        self._bytes_max = bytes_max

    def send(self, descriptors: list[int], answers: list[bytes], /) -> Sequence[tuple[int, int]] | None:
        self.calls.append(len(answers))
        parts = [answer[: self._bytes_max] for answer in answers]
        failed = OneByOne().send(descriptors, parts)
        assert failed is None
        # Nothing was sent of an empty part: the connection takes nothing now.
        sent = [len(part) or -errno.EAGAIN for part in parts]
        return [(place, n) for place, n in enumerate(sent) if n != len(answers[place])] or None


class FailingRing:
    """Sends half of the answers, cuts one of them off, and fails."""

    def __init__(self) -> None:
        self.failed = asyncio.Event()

    def send(self, descriptors: list[int], answers: list[bytes], /) -> Sequence[tuple[int, int]] | None:
        half = len(answers) // 2
        parts = [*answers[:half], answers[half][:100]]
        assert OneByOne().send(descriptors[: half + 1], parts) is None
        self.failed.set()
        raise OSError(errno.ENOMEM, "what was sent cannot be awaited")


def use(served: Served, ring: Ring | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.node.api.turn, "_ring", ring)


async def press(
    served: Served, slow_gate: tuple[asyncio.Event, asyncio.Event], stack: AsyncExitStack, sale: dict[str, Any]
) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """All at once: one claim is on its way to the gate, and all others share the next call."""
    asked, go_on = slow_gate
    connections = [await stack.enter_async_context(connected(served)) for _ in range(BUYERS + 1)]
    for number, (_, writer) in enumerate(connections):
        writer.write(request(sale, f"buyer-{number}", key=f"key-{number}"))
        await asked.wait()  # by the first
    (batcher,) = served.node.api.context.desk._batchers.values()
    async with asyncio.timeout(PATIENCE_S):
        while len(batcher._waiting) < BUYERS:
            await asyncio.sleep(0.001)
    go_on.set()
    return connections


@pytest.mark.parametrize("bytes_max", [None, 0, 1, 200])
async def test_a_batch_is_answered_in_one_call(
    served: Served,
    slow_gate: tuple[asyncio.Event, asyncio.Event],
    monkeypatch: pytest.MonkeyPatch,
    bytes_max: int | None,
) -> None:
    """What does not fit into a connection at once follows it."""
    ring = NotedRing(bytes_max)
    use(served, ring, monkeypatch)
    sale = await served.node.create(units=BUYERS + 1)
    async with AsyncExitStack() as stack:
        connections = await press(served, slow_gate, stack, sale)
        found = [await read(reader) for reader, _ in connections]
    assert [status for status, _, _ in found] == [202] * (BUYERS + 1)
    assert len({body["order_id"] for _, _, body in found}) == BUYERS + 1
    assert BUYERS in ring.calls


async def test_without_a_ring_everybody_is_answered_as_well(
    served: Served, slow_gate: tuple[asyncio.Event, asyncio.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(served, None, monkeypatch)
    sale = await served.node.create(units=BUYERS // 2)
    async with AsyncExitStack() as stack:
        connections = await press(served, slow_gate, stack, sale)
        found = sorted([(await read(reader))[0] for reader, _ in connections])
    assert found == [202] * (BUYERS // 2) + [409] * (BUYERS // 2 + 1)


async def test_nothing_follows_an_answer_of_which_it_is_not_known_whether_it_was_sent(
    served: Served, slow_gate: tuple[asyncio.Event, asyncio.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connections are closed, and whoever repeats the claim with its key finds the order."""
    ring = FailingRing()
    use(served, ring, monkeypatch)
    sale = await served.node.create(units=BUYERS + 1)
    said: list[bytes] = []
    with suppress(ConnectionResetError):  # of connections that were closed before all was sent over them
        async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE_S):
            connections = await press(served, slow_gate, stack, sale)
            assert (await read(connections[0][0]))[0] == 202  # it was alone in its batch
            await ring.failed.wait()
            for _, writer in connections[1:]:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: seckill\r\n\r\n")
            said += [await _all_of(reader) for reader, _ in connections[1:]]
    assert {b"\r\n\r\n" in each for each in said} == {True, False}
    assert not any(b"HTTP/1.1 200" in each for each in said)
    async with connected(served) as (reader, writer):
        for number in range(BUYERS + 1):
            writer.write(request(sale, f"buyer-{number}", key=f"key-{number}"))
            assert (await read(reader))[0] == 202
    view = await served.node.engine.gate.inspect(served.node.api.context.sale_cache.known(sale["id"]).round.ref)  # type: ignore[union-attr]
    assert view is not None
    assert view.admitted == BUYERS + 1


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    found = b""
    with suppress(ConnectionResetError):  # what was sent after it was closed
        while data := await reader.read(65536):
            found += data
    return found


class Wire:
    """A transport with so many bytes that wait to be sent."""

    def __init__(self, waiting_bytes: int, *, closing: bool = False) -> None:
        self.written: list[bytes] = []
        self._waiting_bytes = waiting_bytes
        self._closing = closing

    def get_write_buffer_size(self) -> int:
        return self._waiting_bytes

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes) -> None:
        self.written.append(data)


async def test_an_answer_does_not_pass_what_waits_before_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[ClaimingProtocol] = []
    original = TurnBuffer.add

    def noted(self: TurnBuffer, connection: ClaimingProtocol) -> None:
        found.append(connection)
        original(self, connection)

    monkeypatch.setattr(TurnBuffer, "add", noted)
    sale = await served.node.create()
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann"))
        assert (await read(reader))[0] == 202
        (protocol,) = found
        assert protocol.descriptor >= 0
        real = protocol.transport
        for wire, taken, written in (
            (Wire(0), b"answer", []),
            (Wire(5), b"", [b"answer"]),
            (Wire(0, closing=True), b"", []),
        ):
            protocol._answer_to_send = b"answer"
            protocol.transport = wire  # type: ignore[assignment]
            assert protocol.take_answer() == taken
            assert wire.written == written
            assert protocol.take_answer() == b""
        protocol.transport = real
