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
