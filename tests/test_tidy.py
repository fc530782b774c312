"""Rules of style that can be checked."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "seckill"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# Imports point inward. Each layer may import itself and what stands before it.
LAYERS = [
    {
        "errors",
        "outcomes",
        "numbers",
        "public_ids",
        "secrecy",
        "setting_kinds",
        "failpoints",
        "alarms",
        "telemetry",
        "signing",
        "winners",
        "recurrence",
        "shares",
        "__init__",
    },
    {"alarms", "domain", "settings", "logs"},
    {"letters", "payment_ports"},
    {"ports", "broker_ports", "share_ports", "loops", "entries"},
    {"figures", "insight", "presence"},
    {"boundaries"},
    {
        "afterlife",
        "batching",
        "catalogue",
        "custody",
        "failures",
        "moving",
        "payments",
        "rebuilding",
        "reminding",
        "repetition",
        "retirement",
        "rounds",
        "sharing",
    },
    {"admission", "buyer_orders", "fulfilment", "keeper", "operator_desk", "relaying"},
    {"memory_store"},
    {"gates", "transports", "ledgers", "embedded", "providers", "audit"},
    {"broker_wiring"},
    {"wiring", "watchdog", "repairing"},
    {"roles"},
    {"web", "reports", "doctor"},
    {"compare", "bench", "chaos"},
    {"cli"},
    {"__main__"},
]


def layer_of(module: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if module in names)


USE_CASES = LAYERS[layer_of("rounds")] | LAYERS[layer_of("keeper")]
ADAPTERS = LAYERS[layer_of("gates")]


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("seckill."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "seckill":
            found |= {name.name for name in node.names if not name.name.startswith("__")}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_inward(path: Path) -> None:
    here = part_of(path)
    for imported in imports(path):
        assert imported == here or layer_of(imported) <= layer_of(here), f"{here} imports {imported}"
        if here in ADAPTERS - {"audit"} and imported in ADAPTERS and imported != here:
            assert (here, imported) == ("transports", "gates"), "the streams live in the gate's server"
        if here in USE_CASES:
            assert imported not in ADAPTERS


@pytest.mark.parametrize("path", sorted((PACKAGE / "audit").glob("*.py")), ids=lambda path: path.name)
def test_the_auditor_shares_names_with_the_engine_and_nothing_else(path: Path) -> None:
    """A mistake of the engine's must not be one of the auditor's as well."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seckill"):
            for name in node.names:
                assert re.match(
                    r"seckill\.(audit|errors|settings|numbers|public_ids|gates\.keys|gates\.addresses|ledgers\.tables)\b",
                    f"{node.module}.{name.name}",
                ), f"{node.module}.{name.name}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            assert node.end_lineno - node.lineno < FUNCTION_LINES_MAX, node.name


def test_keys_are_spelt_in_one_module() -> None:
    """F4."""
    for path in [*SOURCES, *PACKAGE.rglob("*.lua")]:
        if path.name != "keys.py":
            assert not re.search(r"seckill:(\{|['\"\w])", path.read_text()), path


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.lua")), ids=lambda path: path.name)
def test_scripts_state_their_contract(path: Path) -> None:
    header = "".join(line for line in path.read_text().splitlines(True) if line.startswith("--"))
    assert all(word in header for word in ("-- KEYS ", "-- Reply "))
    used = {int(n) for n in re.findall(r"KEYS\[(\d)\]", path.read_text())}
    line = re.search(r"^-- KEYS (.*)$", header, re.MULTILINE)
    assert line
    assert used <= {int(n) for n in re.findall(r"(?:^|\s)(\d) ", line[1])}


def test_nothing_is_left_unfinished() -> None:
    for path in SOURCES:
        assert not re.search(r"\b(TODO|FIXME|XXX)\b|NotImplementedError", path.read_text()), path
