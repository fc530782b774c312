"""The role that does what has to happen without a request."""

from seckill.backends.memory.store import MemoryStore
from seckill.bootstrap.engine import open_engine
from seckill.cli.async_command import Role, run
from seckill.cli.role_settings import production
from seckill.loops import Stop
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import Vitals
from seckill.roles.keeper import keep
from seckill.settings import Settings


def keeper() -> None:
    """Open rounds, pass on changes, expire orders, refund, send webhooks, rebuild what the gate lost, audit."""
    settings = production("keeper")
    vitals = Vitals("keeper")

    async def main(stop: Stop) -> None:
        async with vitals.beating():
            await keeper_role(settings, vitals=vitals)(stop)

    with metrics_port(settings, vitals):
        run(main, settings)


def keeper_role(settings: Settings, memory: MemoryStore | None = None, vitals: Vitals | None = None) -> Role:
    async def main(stop: Stop) -> None:
        async with open_engine(settings, memory, role="keeper") as engine:
            await keep(engine, settings, stop, vitals)

    return main
