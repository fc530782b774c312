"""The role that is the clockwork."""

from seckill.cli.configuring import environment
from seckill.cli.running import Role, run
from seckill.loops import Stop
from seckill.memory_store import MemoryStore
from seckill.roles.keeper import keep
from seckill.settings import Settings, require_production
from seckill.wiring import open_engine


def keeper() -> None:
    """Make and open rounds, pass on changes, expire unpaid orders, make refunds, rebuild what the gate lost, audit."""
    settings = environment()
    require_production(settings, "keeper")
    run(keeper_role(settings), settings)


def keeper_role(settings: Settings, memory: MemoryStore | None = None) -> Role:
    async def main(stop: Stop) -> None:
        async with open_engine(settings, memory, role="keeper") as engine:
            await keep(engine, settings, stop)

    return main
