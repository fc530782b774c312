"""`docs/settings.md`, also in Chinese, says what the table of settings says: nothing missing, nothing made up."""

import re
from pathlib import Path

import pytest

from seckill.settings import TABLE, Setting

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "settings.md").read_text(encoding="utf-8")
CHINESE = (DOCS / "settings.zh-CN.md").read_text(encoding="utf-8")


def documented(text: str = TEXT) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"`SECKILL_\w+`", cells[0]):
            assert cells[0] not in rows, f"{cells[0]} stands in the table twice"
            rows[cells[0].strip("`")] = cells[1:]
    return rows


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.variable)
def test_the_row_of_a_setting(setting: Setting) -> None:
    default = f"`{setting.default}`" if setting.default else "–"
    assert documented()[setting.variable] == [default, setting.unit or "–", setting.sentence]


def test_the_order_is_that_of_the_table_and_nothing_is_unknown() -> None:
    assert list(documented()) == [setting.variable for setting in TABLE]


def test_the_text_names_no_unknown_variable() -> None:
    assert set(re.findall(r"SECKILL_[A-Z_]+[A-Z]", TEXT)) <= {setting.variable for setting in TABLE}


def test_the_table_in_chinese_has_the_same_settings_and_defaults() -> None:
    chinese = documented(CHINESE)
    assert [(name, row[0]) for name, row in chinese.items()] == [(name, row[0]) for name, row in documented().items()]
    names = {name: re.findall(r"`[^`]+`", row[2]) for name, row in documented().items()}
    assert {name: re.findall(r"`[^`]+`", row[2]) for name, row in chinese.items()} == names
