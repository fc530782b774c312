"""Chooses how admitted orders travel to the ledger: through a broker if one is set, otherwise in the streams of the
gate's server, and with memory:// within this process."""

from contextlib import AsyncExitStack

from seckill.backends.memory.store import MemoryStore
from seckill.backends.memory.transport import MemoryTransport
from seckill.backends.redis.streams import StreamTransport
from seckill.extras import explained
from seckill.ports.broker import Broker
from seckill.ports.ledger import Ledger
from seckill.ports.transport import Transport
from seckill.settings import Settings


async def open_transport(
    settings: Settings, store: MemoryStore | None, ledger: Ledger, name: str, role: str | None, stack: AsyncExitStack
) -> tuple[Transport, Broker | None]:
    """`store`: only with memory://. `name`: the ledger's name, so that one broker can serve several ledgers."""
    if store is not None:
        return MemoryTransport(store), None
    if not settings.broker_url:
        streams = StreamTransport(
            settings.redis_url, replica_acks=settings.replicas_to_wait_for, entry_form=ledger.entry_form
        )
        stack.push_async_callback(streams.close)
        return streams, None
    with explained():
        from seckill.bootstrap.rabbitmq import open_rabbitmq  # noqa: PLC0415 (most do without a broker)

    return await open_rabbitmq(settings, name, role, stack)
