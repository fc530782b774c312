"""Use cases are put together in one place, and handlers have nothing else to ask."""

import ast
import dataclasses
import inspect
import re
import typing
from functools import cached_property
from pathlib import Path

import seckill
from seckill.bootstrap.use_cases import UseCases
from seckill.web.context import Context

PACKAGE = Path(seckill.__file__).parent
BUILT_HERE = PACKAGE / "bootstrap" / "use_cases.py"


def made_by_use_cases() -> set[str]:
    found = set()
    for member in vars(UseCases).values():
        function = member.func if isinstance(member, cached_property) else member
        if inspect.isfunction(function):
            found.add(typing.get_type_hints(function).get("return"))
    return {kind.__name__ for kind in found if inspect.isclass(kind) and kind.__module__.startswith("seckill.engine.")}


def calls_in(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def test_use_cases_are_built_in_one_place_only() -> None:
    ours = made_by_use_cases()
    assert {"SaleCache", "OperatorDesk", "Payments", "ReleaseDesk", "DeadLetterDesk", "Keeper", "Worker"} <= ours
    assert ours <= calls_in(BUILT_HERE), "the measure sees what is built"
    perhaps = re.compile(rf"\b({'|'.join(sorted(ours))})\(")  # most files need no closer look
    elsewhere = {
        str(path.relative_to(PACKAGE)): found
        for path in PACKAGE.rglob("*.py")
        if path != BUILT_HERE and perhaps.search(path.read_text()) and (found := calls_in(path) & ours)
    }
    assert elsewhere == {}


def test_handlers_are_given_no_ledger_and_no_gate() -> None:
    """They get what use cases tell them. A handler that wants more needs a use case for it."""
    ports = {"seckill.ports.ledger", "seckill.ports.gate", "seckill.ports.history", "seckill.ports.transport"}
    given = typing.get_type_hints(Context)
    assert {name for name, kind in given.items() if getattr(kind, "__module__", "") in ports} == set()
    assert not {"engine", "use_cases", "ledger", "gate"} & {field.name for field in dataclasses.fields(Context)}
    for path in (PACKAGE / "web").rglob("*.py"):
        assert not re.search(r"\bengine\.ledger\b|\bledger\.\w+\(", path.read_text()), path
