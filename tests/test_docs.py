"""Documentation that cannot rot: what it names exists, and what exists is named."""

import re
import textwrap
import tomllib
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from seckill import __version__, telemetry
from seckill.cli import app
from seckill.domain.outcome import REFUSALS, Outcome
from seckill.web.problems import ANSWERS
from tests.fixtures.backends import BACKENDS

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "README.zh-CN.md", "CHANGELOG.md", "SECURITY.md", "SECURITY.zh-CN.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("README*.md")),
]
NOT_THERE_YET: set[str] = set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def anchors(page: Path) -> set[str]:
    """Returns where links into a page may point: headings, as GitHub writes them, and places that it names itself."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_a_part_of_a_page_find_it(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*\.md)?#([^)]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+(?:-[a-z]+)*)", text, re.MULTILINE)) <= targets
    for command in re.findall(r"(?:`|^|\()seckill ([a-z][a-z ,-]*)", text, re.MULTILINE):
        for alternative in command.split(", "):
            words = alternative.split()
            node = app
            for word in words:
                if word not in set(node):
                    break
                node = node[word]
            assert node is not app, f"seckill {command}"


def test_every_command_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for command in set(app) - {"--help", "-h", "--version"}:
        assert re.search(rf"seckill {command}\b", text), command
        if command in ("sale", "token"):
            for sub in set(app[command]) - {"--help", "-h", "--version"}:
                assert re.search(rf"seckill {command} {sub}\b", text), f"{command} {sub}"


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readmes_begin_with_the_two_commands(name: str) -> None:
    text = (ROOT / name).read_text()
    assert text.index("make run") < 600
    assert text.index("make test") < 800


@pytest.mark.parametrize("name", ["quickstart.md", "quickstart.zh-CN.md"])
def test_every_refusal_is_explained_in_its_order(name: str) -> None:
    quickstart = (ROOT / "docs" / name).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \| .+ \|$", quickstart, re.MULTILINE)
    assert [(int(status), code) for status, code in rows if code in set(Outcome)] == [
        (status, outcome.value) for outcome, (status, _) in ANSWERS.items()
    ]


def test_every_outcome_is_a_refusal_or_an_order() -> None:
    assert list(REFUSALS) == [outcome for outcome in Outcome if outcome not in (Outcome.ADMITTED, Outcome.REPEATED)]


def test_the_script_knows_the_outcomes_and_no_others() -> None:
    source = (ROOT / "seckill" / "backends" / "redis" / "lua" / "admit.lua").read_text()
    header = re.search(r"--   outcome +(.*?): the first", source, re.DOTALL)
    assert header
    named = re.findall(r"[a-z_]+", header[1])
    gate = list(Outcome)[list(Outcome).index(Outcome.NOT_READY) : -1]
    assert named == ["invalid", *(outcome.value for outcome in gate)]
    code = source[header.end() :]
    assert {word for word in re.findall(r"'([a-z_]+)'", code) if word in set(Outcome)} == set(named)


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    ours = {metric.name for metric in REGISTRY.collect() if metric.name.startswith("seckill_")}
    by_sale = {metric.name for metric in telemetry.SALES.collect()}
    others = [value for value in vars(telemetry).values() if isinstance(value, MetricWrapperBase)]
    assert len(ours - by_sale) == len({metric._name for metric in others})
    for name in ours:
        assert f"`{name}" in page, name


def test_the_changelog_begins_with_this_version() -> None:
    """While a version is being made, its changes stand under “Unreleased”."""
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    if ".dev" in __version__:
        assert versions[0] == "Unreleased"
        assert all(version not in __version__ for version in versions)
    else:
        assert next(version for version in versions if version != "Unreleased") == __version__


def test_what_is_not_there_yet_is_said_and_is_not_there() -> None:
    readme = (ROOT / "README.md").read_text()
    assert NOT_THERE_YET.isdisjoint(set(app))
    assert all(f"`{name}`" in readme for name in NOT_THERE_YET)


def test_every_backend_is_documented() -> None:
    page = (ROOT / "docs" / "backends.md").read_text()
    assert all(f"(`{name}`)" in page for name in BACKENDS)
    assert all((ROOT / path).exists() for path in re.findall(r"`((?:tests|seckill|scripts)/[\w/.-]+)`", page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_are_there(page: Path) -> None:
    """Pages name them by their path from the root, from the package, or from the folder of the page."""
    named = set(re.findall(r"`((?:\w+/)+[\w-]+\.(?:py|lua|js))`", page.read_text(encoding="utf-8")))
    assert {
        path for path in named if not any((top / path).exists() for top in (ROOT, ROOT / "seckill", page.parent))
    } == set()


def test_the_map_shows_the_tree() -> None:
    """CONTRIBUTING.md draws every room and module at the top of the package, in the order of the layers."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = re.search(r"## The map.*?```\n(.*?)```", page, re.DOTALL)
    assert drawn
    rooms = re.findall(r"\b(\w+(?:/|\.py))(?=\s|$)", drawn[1], re.MULTILINE)
    package = ROOT / "seckill"
    there = {f"{path.name}/" if path.is_dir() else path.name for path in package.iterdir() if path.name != "py.typed"}
    assert set(rooms) == {name for name in there if not name.startswith("__")}
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    order = [name.strip() for layer in layers for name in layer.split("|") if not name.strip().startswith("__")]
    drawn_order = [room.removesuffix("/").removesuffix(".py") for room in rooms]
    level = {name: i for i, layer in enumerate(layers) for name in map(str.strip, layer.split("|"))}
    assert sorted(drawn_order) == sorted(order)
    assert [level[name] for name in drawn_order] == sorted(level[name] for name in drawn_order)


def test_the_map_names_every_room_of_web() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("| room in `seckill/web/` |")[2].partition("\n\n")[0]
    rooms = {path.parent.name for path in (ROOT / "seckill" / "web").glob("*/__init__.py")}
    assert rooms
    assert re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE) == sorted(rooms)


def test_what_contributing_names_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:seckill|tests|docs)/[\w/.-]+)`", page)
    assert len(named) > 30
    assert [path for path in named if not (ROOT / path).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", page, re.MULTILINE)) <= targets


@pytest.mark.parametrize("name", ["from-the-tutorial.md", "from-the-tutorial.zh-CN.md"])
def test_the_lines_that_fail_are_those_of_the_step(name: str) -> None:
    """The guided path shows code of the ladder: each block is in the file that the next words name."""
    page = ROOT / "docs" / name
    shown = re.findall(r"(?ms)^```python\n(.*?)^```\n\n\S+?\s?\[\w+\.py\]\(([^)]+)\)", page.read_text())
    assert len(shown) == page.read_text().count("```python\n") == 6
    for lines, file in shown:
        assert lines.rstrip() in textwrap.dedent(indented(page.parent / file, lines.splitlines()[0])), file


def indented(file: Path, first: str) -> str:
    """Returns the lines from the one that begins so to the end of what is indented as far."""
    lines = file.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == first)
    depth = len(lines[start]) - len(lines[start].lstrip())
    return "\n".join(line for line in lines[start:] if len(line) - len(line.lstrip()) >= depth)
