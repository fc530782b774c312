"""The role that writes orders."""

from seckill.cli.configuring import environment
from seckill.cli.running import Role, run
from seckill.loops import Stop
from seckill.memory_store import MemoryStore
from seckill.roles.worker import work
from seckill.settings import Settings, require_production
from seckill.wiring import open_engine


def worker() -> None:
    """Write admitted orders to the ledger."""
    settings = environment()
    require_production(settings, "worker")
    run(worker_role(settings), settings)


def worker_role(settings: Settings, memory: MemoryStore | None = None) -> Role:
    async def main(stop: Stop) -> None:
        async with open_engine(settings, memory, role="worker", audits=False) as engine:
            await work(engine, settings, stop)

    return main
