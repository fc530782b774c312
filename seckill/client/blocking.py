"""The client for programs without asyncio. It has the same methods, which wait for their results."""

import asyncio
import copy
import functools
import ssl
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from seckill.client.asynchronous import AsyncClient
from seckill.client.repeats import ANSWER_WITHIN_S, REPEAT_FOR_S

P = ParamSpec("P")
T = TypeVar("T")


class _Background:
    """An event loop in a separate thread, which starts at the first use, so that a server may fork before that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except BaseException:  # also Ctrl-C: no caller waits for the result any more
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="seckill client", daemon=True)
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


def _waits(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    @functools.wraps(method)
    def wait(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client._background.result(method(client._client, *args, **kwargs))

    return wait


def _iterates(
    method: Callable[Concatenate[AsyncClient, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate["Client", P], Iterator[T]]:
    @functools.wraps(method)
    def iterate(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        found = method(client._client, *args, **kwargs)

        async def following() -> list[T]:
            async for each in found:
                return [each]
            return []

        try:
            while more := client._background.result(following()):
                yield from more
        finally:
            client._background.result(found.aclose())

    return iterate


class Client:
    """Works like `AsyncClient`. Any number of threads may share one."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        within_s: float = ANSWER_WITHIN_S,
        repeat_for_s: float = REPEAT_FOR_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._client = AsyncClient(url, token, within_s=within_s, repeat_for_s=repeat_for_s, tls=tls)
        self._background = _Background()

    def signed_in(self, token: str | None) -> "Client":
        """The same API for another user over the same connections, which the first client closes."""
        other = copy.copy(self)
        other._client = self._client.signed_in(token)
        return other

    def close(self) -> None:
        self._background.result(self._client.close())
        self._background.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    create_sale = _waits(AsyncClient.create_sale)
    duplicate_sale = _waits(AsyncClient.duplicate_sale)
    change_sale = _waits(AsyncClient.change_sale)
    sales = _waits(AsyncClient.sales)
    sale = _waits(AsyncClient.sale)
    pause_sale = _waits(AsyncClient.pause_sale)
    resume_sale = _waits(AsyncClient.resume_sale)
    close_sale = _waits(AsyncClient.close_sale)
    add_units = _waits(AsyncClient.add_units)
    rounds = _waits(AsyncClient.rounds)
    custody = _waits(AsyncClient.custody)
    claim = _waits(AsyncClient.claim)
    get_pass = _waits(AsyncClient.get_pass)
    order = _waits(AsyncClient.order)
    wait_for_order = _waits(AsyncClient.wait_for_order)
    orders = _waits(AsyncClient.orders)
    pay = _waits(AsyncClient.pay)
    cancel = _waits(AsyncClient.cancel)
    join = _waits(AsyncClient.join)
    entry_in = _waits(AsyncClient.entry_in)
    leave = _waits(AsyncClient.leave)
    all_orders = _iterates(AsyncClient.all_orders)
    export_orders = _iterates(AsyncClient.export_orders)
    events = _waits(AsyncClient.events)
    follow_events = _iterates(AsyncClient.follow_events)
    event_pages = _iterates(AsyncClient.event_pages)
    audit = _waits(AsyncClient.audit)
    cancel_order = _waits(AsyncClient.cancel_order)
    refund_order = _waits(AsyncClient.refund_order)
    create_webhook = _waits(AsyncClient.create_webhook)
    webhooks = _waits(AsyncClient.webhooks)
    webhook = _waits(AsyncClient.webhook)
    change_webhook = _waits(AsyncClient.change_webhook)
    delete_webhook = _waits(AsyncClient.delete_webhook)
    rotate_webhook = _waits(AsyncClient.rotate_webhook)
    test_webhook = _waits(AsyncClient.test_webhook)
    webhook_deliveries = _waits(AsyncClient.webhook_deliveries)
    redeliver_webhook = _waits(AsyncClient.redeliver_webhook)
    upload_vouchers = _waits(AsyncClient.upload_vouchers)
    upload_image = _waits(AsyncClient.upload_image)
    count_vouchers = _waits(AsyncClient.count_vouchers)
    voucher = _waits(AsyncClient.voucher)
    redeem_voucher = _waits(AsyncClient.redeem_voucher)
    dead_letters = _waits(AsyncClient.dead_letters)
    dead_letter = _waits(AsyncClient.dead_letter)
    replay_dead_letter = _waits(AsyncClient.replay_dead_letter)
    discard_dead_letter = _waits(AsyncClient.discard_dead_letter)
    export_buyer = _waits(AsyncClient.export_buyer)
    erase_buyer = _waits(AsyncClient.erase_buyer)
    call = _waits(AsyncClient.call)
    document = _waits(AsyncClient.document)
