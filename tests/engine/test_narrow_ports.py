"""A use case is given only the part of a port that it needs. So readers need not know forty methods to see what it
does, and tests need to fake only these."""

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator

import pytest

import seckill.engine
from seckill.engine.rounds.shared_gate import SharedGate
from seckill.ports.gate import Gate
from seckill.ports.ledger import Ledger
from seckill.ports.transport import Transport

METHODS_MAX = 8
# It is no use case but a gate itself, made of another one: so it needs all that a gate can do.
WHOLE = {SharedGate}

MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(seckill.engine.__path__, "seckill.engine.")
    if not found.ispkg
]


def ports_of(function: Callable[..., object]) -> Iterator[tuple[str, type]]:
    """The parameters that are ports, also those that may be left out."""
    for name, hint in typing.get_type_hints(function).items():
        for each in typing.get_args(hint) or (hint,):
            if isinstance(each, type) and each.__module__.startswith("seckill.ports.") and is_protocol(each):
                yield name, each


def is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def members(port: type) -> set[str]:
    return {name for part in port.__mro__ if is_protocol(part) for name in vars(part) if not name.startswith("_")}


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for module in MODULES:
        own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
        for each in own:
            if inspect.isfunction(each):
                yield each.__qualname__, each
            elif inspect.isclass(each) and each not in WHOLE:
                yield from ((f.__qualname__, f) for f in vars(each).values() if inspect.isfunction(f))


FUNCTIONS = {name: function for name, function in functions() if any(ports_of(function))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_use_case_is_given_more_than_a_part_of_a_port(name: str) -> None:
    given = {f"{parameter}: {port.__name__}": len(members(port)) for parameter, port in ports_of(FUNCTIONS[name])}
    assert {port: size for port, size in given.items() if size > METHODS_MAX} == {}


def test_the_measure_sees_what_it_should() -> None:
    """Otherwise it would pass whatever is there."""

    def too_much(ledger: Ledger, gate: Gate | None = None) -> None: ...

    assert [(name, len(members(port)) > METHODS_MAX) for name, port in ports_of(too_much)] == [
        ("ledger", True),
        ("gate", True),
    ]
    measured = {port.__name__ for function in FUNCTIONS.values() for _, port in ports_of(function)}
    assert {"WinnersGate", "WorkerLedger", "WorkerTransport", "CaptureLedger", "FailoverGate"} <= measured
    assert len(members(Ledger)) > 40
    assert len(members(Transport)) > 10
