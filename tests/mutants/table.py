"""The list as it stands in docs/guarantees.md. `python -m tests.mutants.table` writes it there.

The Chinese page has only their number.
"""

import re

from tests.mutants import MUTANTS
from tests.mutants.mutant import ROOT, without_parameters

PAGE = ROOT / "docs" / "guarantees.md"
CHINESE = ROOT / "docs" / "guarantees.zh-CN.md"
_PLACE = re.compile(r"(<!-- mutants: made by .*?; begin -->\n)(.*?)(<!-- mutants: end -->)", re.DOTALL)


def table() -> str:
    rows = ["| no. | flaw | planted in | caught by |", "|---|---|---|---|"]
    for mutant in MUTANTS:
        tests = "<br>".join(map(_link, mutant.catchers))
        rows.append(f"| {mutant.trap} | {mutant.name} | `{mutant.path}` | {tests} |")
    return "\n".join(rows) + "\n"


def _link(test: str) -> str:
    path, _, name = without_parameters(test).partition("::")
    return f"[{name}](../{path})"


def written() -> str:
    """Returns the table that the page has."""
    found = _PLACE.search(PAGE.read_text())
    assert found, "the place of the table is gone"
    return found[2]


def main() -> None:
    page = _PLACE.sub(lambda place: place[1] + table() + place[3], PAGE.read_text())
    PAGE.write_text(re.sub(r"plants \*\*\d+\*\* flaws", f"plants **{len(MUTANTS)}** flaws", page))
    CHINESE.write_text(re.sub(r"把 \*\*\d+\*\* 处差错", f"把 **{len(MUTANTS)}** 处差错", CHINESE.read_text()))


if __name__ == "__main__":
    main()
