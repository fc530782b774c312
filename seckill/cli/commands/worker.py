"""The role that writes orders."""

from seckill.backends.memory.store import MemoryStore
from seckill.bootstrap.engine import open_engine
from seckill.cli.async_command import Role, run
from seckill.cli.role_settings import production
from seckill.loops import Stop
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import Vitals
from seckill.roles.worker import work
from seckill.settings import Settings


def worker() -> None:
    """Write admitted orders to the ledger."""
    settings = production("worker")
    vitals = Vitals("worker")

    async def main(stop: Stop) -> None:
        async with vitals.beating():
            await worker_role(settings, vitals=vitals)(stop)

    with metrics_port(settings, vitals):
        run(main, settings)


def worker_role(settings: Settings, memory: MemoryStore | None = None, vitals: Vitals | None = None) -> Role:
    async def main(stop: Stop) -> None:
        async with open_engine(settings, memory, role="worker", audits=False) as engine:
            await work(engine, settings, stop, vitals)

    return main
