"""Rules of style that can be checked."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "seckill"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LINES_MAX = 600
FUNCTION_LINES_MAX = 70


def test_files_and_functions_stay_small() -> None:
    texts = {str(path.relative_to(PACKAGE)): path.read_text() for path in SOURCES}
    assert [path for path, text in texts.items() if text.count("\n") > LINES_MAX] == []
    assert [
        (path, node.name)
        for path, text in texts.items()
        if text.count("\n") >= FUNCTION_LINES_MAX
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX
    ] == []


def test_keys_are_spelt_in_one_module() -> None:
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


def test_no_public_class_has_the_name_of_another() -> None:
    """But for the documents of the API, which are called by what they are about, on the server's side and the
    client's."""
    documents = {*(PACKAGE / "web").rglob("*schemas.py"), PACKAGE / "client" / "documents.py"}
    found: dict[str, list[Path]] = {}
    for path in (path for path in SOURCES if path not in documents):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            found.setdefault(name, []).append(path.relative_to(PACKAGE))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


# The suites of ports, which each run on several backends.
CONTRACTS = {"backends/gate", "backends/transport"}
ROOMS = ("audit", "backends", "cli", "domain", "engine", "lab", "local", "operations", "ports", "web")


def test_tests_mirror_the_tree_that_they_test() -> None:
    tests = ROOT / "tests"
    there = {path.parent.relative_to(tests) for room in ROOMS for path in (tests / room).rglob("__init__.py")}
    assert len(there) > len(ROOMS)
    assert {str(folder) for folder in there if not (PACKAGE / folder).is_dir()} == CONTRACTS


def test_names_and_docstrings_of_tests_begin_with_words() -> None:
    """A number of a list of mistakes may follow, but it tells a reader nothing."""
    paths = list((ROOT / "tests").rglob("test_*.py"))
    texts = {path: path.read_text() for path in paths}
    assert [
        (path, name) for path in paths for name in re.findall(r"def test_[fms]\d+\b|def test_[fms]\d+_", texts[path])
    ] == []
    assert [(path, code) for path in paths for code in re.findall(r'(?:"""|\n\n\s*)([FMS]\d+)\b', texts[path])] == []


def test_an_outbox_is_the_ledgers_and_a_relay_the_brokers() -> None:
    """The words that once had several meanings have one: the table of Words in docs/how-it-works.md."""
    rooms = {
        "outbox": (
            "audit/",
            "backends/sql/",
            "bootstrap/",
            "engine/",
            "lab/chaos/",
            "operations/repair",
            "ports/ledger",
        ),
        "relay": (
            *("backends/rabbitmq/", "backends/redis/relay_source", "backends/redis/keys", "bootstrap/", "lab/chaos/"),
            *("engine/orders/broker_relay", "engine/traces/", "ports/broker", "roles/worker", "settings/", "telemetry"),
        ),
    }
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text().lower() for path in SOURCES}
    for word, where in rooms.items():
        found = [path for path, text in texts.items() if word in text]
        assert len(found) > 5
        assert [path for path in found if not path.startswith(where)] == []
    assert "outbox" not in texts["engine/orders/broker_relay.py"]
    assert "relay" not in texts["engine/orders/releases.py"]
