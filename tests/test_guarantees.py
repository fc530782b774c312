"""docs/guarantees.md: every promise has a test, every test is there, and the figures are those of the code.

The Chinese page makes the same promises, row by row and under the same conditions.
"""

import re

import pytest

from tests.audit.planting import PLANTINGS
from tests.mutants import MUTANTS
from tests.mutants.mutant import ROOT, defines
from tests.mutants.table import CHINESE, PAGE, table, written

HEADER = "| promise | holds with | test |"
NEEDS = {"any", "`strict`", "RabbitMQ", "Cluster", "`strict`, Cluster", "`strict`, Cluster or Sentinel", "control"}
IN_CHINESE = {
    "any": "任意",
    "control": "对照",
    "`strict`, Cluster": "`strict`，Cluster",
    "`strict`, Cluster or Sentinel": "`strict`，Cluster 或 Sentinel",
}
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./(tests/[\w/]+\.py)\)")


def promises(page: str) -> list[tuple[str, str, str]]:
    """Each with what it needs, and the cell with its tests."""
    found = []
    inside = False
    for line in page.splitlines():
        inside = line == HEADER or (inside and line.startswith("|"))
        if inside and line != HEADER and not line.startswith("|---"):
            promise, needs, tests = [cell.strip() for cell in line.strip("|").rsplit("|", 2)]
            found.append((promise, needs, tests))
    return found


def faults(page: str) -> list[str]:
    found = []
    for promise, needs, tests in promises(page):
        links = _LINK.findall(tests)
        if not links:
            found.append(f"no test: {promise}")
        if needs not in NEEDS:
            found.append(f"with which settings, {needs!r}? {promise}")
        found += [f"no such test: {path}::{name}" for name, path in links if not defines(ROOT, f"{path}::{name}")]
    return found


def test_every_promise_has_a_test_that_is_there() -> None:
    page = PAGE.read_text()
    assert len(promises(page)) > 80
    assert faults(page) == []
    promised = page[page.index("## What is promised") : page.index("## Under which settings")]
    assert promised.count(HEADER) == promised.count("\n### "), "each of its sections is such a table"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| All is well. | any |  |", "no test"),
        ("| All is well. | any | `tests/test_guarantees.py` |", "no test"),
        ("| All is well. | any | [test_x](../tests/test_guarantees.py) |", "no such test"),
        ("| All is well. | any | [test_x](../tests/test_nowhere.py) |", "no such test"),
        (
            "| All is well. | luck | [test_the_figures_of_the_page_are_right](../tests/test_guarantees.py) |",
            "with which settings",
        ),
        ("| All is well. | any | [test_the_figures_of_the_page_are_right](../tests/test_guarantees.py) |", ""),
    ],
)
def test_a_promise_without_its_test_is_noticed(row: str, fault: str) -> None:
    told = faults(f"{HEADER}\n|---|---|---|\n{row}\n")
    assert bool(told) == bool(fault)
    assert all(fault in one for one in told)


def test_every_test_that_is_named_anywhere_on_the_page_is_there() -> None:
    assert [
        f"{path}::{name}" for name, path in _LINK.findall(PAGE.read_text()) if not defines(ROOT, f"{path}::{name}")
    ] == []


def test_the_list_of_mutants_is_the_one_that_is_run() -> None:
    assert written() == table(), "run python -m tests.mutants.table"


def test_the_figures_of_the_page_are_right() -> None:
    page = PAGE.read_text()
    assert f"plants **{len(MUTANTS)}** flaws" in page
    assert f"**{len(PLANTINGS)}** flaws are written by hand" in page
    assert len(MUTANTS) >= 40
    chinese = CHINESE.read_text(encoding="utf-8")
    assert f"把 **{len(MUTANTS)}** 处差错" in chinese
    assert f"手工写入 **{len(PLANTINGS)}** 处差错" in chinese


def sections(page: str) -> list[tuple[str, str]]:
    """Each heading with what stands below it."""
    return [(part.partition("\n")[0].lstrip("# "), part) for part in re.split(r"\n(?=##+ )", page)[1:]]


def test_the_chinese_page_promises_the_same_under_the_same_conditions() -> None:
    english, chinese = sections(PAGE.read_text()), sections(CHINESE.read_text(encoding="utf-8"))
    for (heading, original), (_, translation) in zip(english, chinese, strict=True):
        if HEADER not in original:
            continue
        rows = [row.strip("| ").rsplit(" | ", 1) for row in re.findall(r"^\| .*", translation, re.MULTILINE)]
        needs = [IN_CHINESE.get(needs, needs) for _, needs, _ in promises(original)]
        assert rows[0] == ["承诺", "条件"], heading
        assert [row[1] for row in rows[1:]] == needs, heading
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        assert translation.rstrip().endswith(f"\n\n[对应的测试](guarantees.md#{anchor})"), heading


def test_the_chinese_page_leaves_out_nothing_that_is_not_promised_and_no_run() -> None:
    english, chinese = PAGE.read_text(), CHINESE.read_text(encoding="utf-8")
    for (heading, original), (_, translation) in zip(sections(english), sections(chinese), strict=True):
        points = [part.count("\n- ") for part in (original, translation)]
        assert points[0] == points[1], heading
    runs = [re.findall(r"^\| `seckill chaos .*", page, re.MULTILINE) for page in (english, chinese)]
    assert runs[0] == runs[1] != []
