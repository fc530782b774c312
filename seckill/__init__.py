"""A flash-sale engine that sells exactly the stock, loses no accepted order, and lets anyone check it.

The public API is what stands here, in `seckill.client`, `seckill.payment` and `seckill.testing`: docs/python.md.
Everything else may change from one release to the next.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seckill.asgi import create_app
    from seckill.bootstrap.engine import open_engine
    from seckill.domain.order import OrderState
    from seckill.domain.outcome import Outcome
    from seckill.errors import SeckillError
    from seckill.settings import Settings

__version__ = "0.3.0.dev0"

__all__ = ["OrderState", "Outcome", "SeckillError", "Settings", "__version__", "create_app", "open_engine"]

# Loaded when they are asked for: most commands need none of them, and a web server takes a while.
_PLACES = {
    "Outcome": "seckill.domain.outcome",
    "OrderState": "seckill.domain.order",
    "SeckillError": "seckill.errors",
    "Settings": "seckill.settings",
    "create_app": "seckill.asgi",
    "open_engine": "seckill.bootstrap.engine",
}


if not TYPE_CHECKING:  # a type checker would take it for a promise of every name

    def __getattr__(name: str) -> object:
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(f"module 'seckill' has no attribute {name!r}")
        found: object = getattr(import_module(place), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
