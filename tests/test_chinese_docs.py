"""A page in Chinese says what the page in English says: the same structure, the same code, the same names.

Prose cannot be compared by a program. What a reader types or looks up can: headings, tables, blocks of code, and every
name in backticks. A fact that is added to one page of a pair and forgotten in the other shows in one of these.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = [ROOT, ROOT / "docs", ROOT / "examples", *(ROOT / "examples").iterdir()]
CHINESE = sorted(page for folder in FOLDERS for page in folder.glob("*.zh-CN.md"))
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# Made from tests/mutants, with the names of tests; the Chinese page leads to it.
MUTANTS = re.compile(r"<!-- mutants: .*?begin -->.*?<!-- mutants: end -->\n", re.DOTALL)
HAN = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def english(page: Path) -> Path:
    return page.with_name(page.name.replace(".zh-CN.md", ".md"))


@dataclass(frozen=True)
class Page:
    code: list[tuple[str, list[str]]]
    headings: list[int]
    tables: list[int]
    names: set[str]


@cache
def read(path: Path) -> Page:
    text = MUTANTS.sub("", path.read_text(encoding="utf-8"))
    prose = FENCE.sub("", text)
    return Page(
        code=[(language, [line.strip() for line in body.splitlines()]) for language, body in FENCE.findall(text)],
        headings=[len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)],
        tables=[table.count("\n") for table in re.findall(r"(?:^\|.*\n)+", prose, re.MULTILINE)],
        names={" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)},
    )


def is_translation(chinese: str, original: str | None) -> bool:
    """The same line, but for what may be in Chinese: comments, quotations, texts between tags, words beside a tree."""
    texts = (("#", ".", "$"), ('"', '[^"]', '"'), (">", "[^<]", "<"), ("── ", ".", "$"), ("   ", "[^#]", "$"))
    pattern, end = "", 0
    for found in re.finditer("|".join(f"{a}{inside}*?{HAN}{inside}*?{z}" for a, inside, z in texts), chinese):
        [anything] = [f"{a}{inside}*{z}" for a, inside, z in texts if found[0].startswith(a)]
        pattern += re.escape(chinese[end : found.start()]) + anything
        end = found.end()
    pattern = (pattern + re.escape(chinese[end:])).replace(re.escape('"zh-CN"'), '"en"')
    return original is not None and re.fullmatch(re.sub(r"(?:\\ )+", " +", pattern), original) is not None


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_the_two_pages_of_a_pair_link_to_each_other_at_their_top(page: Path) -> None:
    for this, label, other in ((page, "English", english(page)), (english(page), "中文", page)):
        top = this.read_text(encoding="utf-8").split("\n## ")[0]
        assert f"[{label}]({other.name})" in top, name(this)


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_pair_has_the_same_headings_and_tables(page: Path) -> None:
    assert read(page).headings == read(english(page)).headings
    assert read(page).tables == read(english(page)).tables, "rows of each table"


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_pair_has_the_same_code(page: Path) -> None:
    here, there = read(page).code, read(english(page)).code
    assert [language for language, _ in here] == [language for language, _ in there]
    for (_, lines), (_, originals) in zip(here, there, strict=True):
        for line, original in zip_longest(lines, originals):
            assert line is not None, original
            assert is_translation(line, original), line


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_pair_names_the_same_commands_settings_and_fields(page: Path) -> None:
    here, there = read(page).names, read(english(page)).names
    assert there - here == set(), "only in English"
    assert here - there == set(), "only in Chinese"


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_chinese_page_leads_to_chinese_pages_where_there_are_any(page: Path) -> None:
    for label, target in re.findall(r"\[([^]]*)\]\(([^)#]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        translated = page.parent / target.replace(".md", ".zh-CN.md")
        its_own = target == english(page).name  # what is not repeated here: the names of tests
        assert label == "English" or its_own or not translated.exists(), target


def test_every_page_has_its_pair_but_those_that_are_said_to_be_in_english() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    alone = {page for page in pages if not page.endswith(".zh-CN.md") and page.replace(".md", ".zh-CN.md") not in pages}
    assert alone == {"chaos.md", "failpoints.md", "simulation.md", "speed.md"}


@pytest.mark.parametrize(
    ("line", "original", "same"),
    [
        ("seckill up   # 启动", "seckill up    # starts it", True),
        ('seckill sale create "水壶" --units 5', 'seckill sale create "Kettle" --units 5', True),
        ("├── valkey-server   每次应答前落盘", "├── valkey-server   fsync before every answer", True),
        ("<h1>今日特惠</h1>", "<h1>Today only</h1>", True),
        ('seckill sale create "水壶" --units 6', 'seckill sale create "Kettle" --units 5', False),
        ("seckill run  # 启动", "seckill up   # starts it", False),
        ('"title": "Kettle"', '"title": "Phone"', False),
        ("seckill up", None, False),
    ],
)
def test_only_comments_and_texts_may_differ(line: str, original: str | None, same: bool) -> None:
    assert is_translation(line, original) is same
