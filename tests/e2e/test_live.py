"""Buyers on two API processes hear of what the worker and the keeper write, by event stream and by WebSocket."""

import asyncio
import os
import signal
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from seckill.web.buyers.buyer_tokens import LEEWAY_S, mint_buyer_token
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.live import Socket, Stream, socket, stream

BUYERS = 60


def ports_of(pid: int) -> set[int]:
    """The clients' ports of the connections that a process has."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            inodes.add(str(link.readlink()).removeprefix("socket:[").rstrip("]"))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(line[2].split(":")[1], 16) for line in lines if line[9] in inodes}


async def next_state(listener: Stream | Socket) -> str:
    if isinstance(listener, Socket):
        while (heard := await listener.hear()).get("error") == "not_ready":  # gate or ledger has too much to do
            await listener.say({"watch": heard["order_id"]})
        return str(heard["state"])
    event = await listener.next()
    assert event is not None
    return event.id


async def listening(opened: AsyncExitStack, stack: Stack, user: str, order_id: str, by_socket: bool) -> Stream | Socket:
    if not by_socket:
        while True:
            made = await opened.enter_async_context(stream(stack.url, order_id, stack.token(user)))
            if made.response.status_code != 503:  # gate or ledger has too much to do
                return made
            await asyncio.sleep(0.05)
    listener = await opened.enter_async_context(socket(stack.url, stack.token(user)))
    await listener.say({"watch": order_id})
    return listener


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # the ledger plays no part in it
async def test_every_buyer_hears_of_every_change_on_whichever_process(folder: Path, database_url: str) -> None:
    async with running(Stack(folder, database_url=database_url)) as stack, AsyncExitStack() as opened:
        (worker,) = stack.pids("worker")
        sale = await stack.create_sale(units=BUYERS)
        crowd = Crowd(stack, sale)
        os.kill(worker, signal.SIGSTOP)
        await asyncio.gather(*(crowd.buy(f"buyer-{i}") for i in range(BUYERS)))
        # Stops one process at a time: otherwise a process that gets no CPU time on a busy machine might have none of
        # them.
        apis = stack.pids("api")
        assert len(apis) == 2
        listeners: dict[str, Stream | Socket] = {}
        for pid, users in zip(apis, (list(crowd.orders)[::2], list(crowd.orders)[1::2]), strict=True):
            os.kill(pid, signal.SIGSTOP)
            opening = (
                listening(opened, stack, user, crowd.orders[user], by_socket=i % 2 == 0) for i, user in enumerate(users)
            )
            listeners |= zip(users, await asyncio.gather(*opening), strict=True)
            os.kill(pid, signal.SIGCONT)
        assert await asyncio.gather(*map(next_state, listeners.values())) == ["queued"] * BUYERS
        ports = {each.connection.local_address[1] for each in listeners.values() if isinstance(each, Socket)}
        assert [len(ports & ports_of(pid)) for pid in apis] == [len(ports) // 2] * 2

        os.kill(worker, signal.SIGCONT)
        assert await asyncio.gather(*map(next_state, listeners.values())) == ["unpaid"] * BUYERS

        async def end(user: str, verb: str) -> None:
            url = f"{stack.url}/v1/orders/{crowd.orders[user]}/{verb}"
            headers = {"Authorization": f"Bearer {stack.token(user)}"}
            while (done := await crowd._http.post(url, headers=headers)).status_code == 503:
                await asyncio.sleep(0.05)  # the ledger has too much to do
            assert done.status_code == 200, done.text

        verbs = ["pay", "pay", "cancel", "cancel"] * (BUYERS // 4)
        ends = [{"pay": "paid", "cancel": "cancelled"}[verb] for verb in verbs]
        await asyncio.gather(*(end(user, verb) for user, verb in zip(listeners, verbs, strict=True)))
        assert await asyncio.gather(*map(next_state, listeners.values())) == ends

        late = [
            await listening(opened, stack, user, crowd.orders[user], by_socket=i % 2 == 1)
            for i, user in enumerate(listeners)
        ]
        assert await asyncio.gather(*map(next_state, late)) == ends, "who comes after the fact learns it all the same"


async def test_bad_clients_are_refused_and_disturb_nobody(folder: Path) -> None:
    async with running(Stack(folder)) as stack:
        (worker,) = stack.pids("worker")
        crowd = Crowd(stack, await stack.create_sale())
        os.kill(worker, signal.SIGSTOP)
        await crowd.buy("ann")
        order_id = crowd.orders["ann"]
        async with AsyncExitStack() as opened:
            good = [
                await listening(opened, stack, "ann", order_id, by_socket)
                for by_socket in (True, False)
                for _ in "1234"
            ]
            assert await asyncio.gather(*map(next_state, good)) == ["queued"] * len(good)
            for _ in range(4):  # some on each process, which read nothing from now on
                deaf = await opened.enter_async_context(socket(stack.url, stack.token("eve"), close_timeout=0.1))
                deaf.connection.transport.pause_reading()
                for _ in range(10):
                    await deaf.say({"watch": order_id})
            await check_refusals(stack, order_id)
            os.kill(worker, signal.SIGCONT)
            assert await asyncio.gather(*map(next_state, good)) == ["unpaid"] * len(good)

            # Ctrl-C does not wait for those who listen, and tells them.
            assert await asyncio.to_thread(stack.stop) == 0
            for listener in good:
                if isinstance(listener, Socket):
                    assert await listener.closed() == 1012
                else:
                    assert await listener.next() is None
        assert stack.logged("Traceback") == 0


async def check_refusals(stack: Stack, order_id: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await socket(stack.url, origin="https://evil.example").__aenter__()
    assert refused.value.response.status_code == 403

    async with socket(stack.url, stack.token("eve")) as eve:
        await eve.say({"watch": order_id})
        assert await eve.hear() == {"error": "not_found", "order_id": order_id}
        sending = asyncio.create_task(eve.connection.send("x" * (1 << 20)))
        assert await eve.closed() == 1009
        with suppress(Exception):
            await sending
    async with stream(stack.url, order_id, stack.token("eve")) as told:
        assert told.response.status_code == 404

    secret = stack.settings.jwt_secret
    assert secret is not None
    began = time.time() - LEEWAY_S
    expiring = mint_buyer_token(secret, "ann", lifetime_s=5, issuer=None, audience=None, now=began)
    async with socket(stack.url, expiring) as ann, stream(stack.url, order_id, expiring) as told:
        await ann.say({"watch": order_id})
        assert (await ann.hear())["state"] == "queued"
        assert await ann.closed() == 4401
        assert await told.states() == ["queued"]
