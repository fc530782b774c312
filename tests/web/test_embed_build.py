"""`embed.js`, the bundle of the buyers' pages and the types of the API are built and kept in the repository: they are
what their sources make."""

import gzip
import hashlib
import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from seckill.backends.payment.sandbox import Sandbox
from seckill.settings import Settings
from seckill.web.openapi import document
from seckill.web.pages.pages import EMBED_FACTS, Pages

ROOT = Path(__file__).parents[2]
EMBED = ROOT / "embed"
SCRIPT = ROOT / "seckill" / "web" / "embed.js"
BUILT = ("seckill/web/embed.js", "seckill/web/static/bundle/buyer.js", "seckill/web/static/bundle/buyer.css")
SIZE_MAX = 30_000
HOW = "run make embed"


def test_the_script_is_made_from_these_sources() -> None:
    """This needs no Node: each source, and the result, is as it was when the script was built."""
    built_from = json.loads((EMBED / "built-from.json").read_text())
    assert {"seckill/web/static/app/sale.js", "embed/element.js", "embed/build.mjs", *BUILT} <= set(built_from)
    for path, digest in built_from.items():
        assert hashlib.sha256((ROOT / path).read_bytes()).hexdigest() == digest, f"{path} has changed: {HOW}"


def test_the_types_are_made_from_this_api() -> None:
    digest = runpy.run_path(str(EMBED / "describe.py"))["described"]()["digest"]
    types = (ROOT / "seckill/web/static/seckill-api.d.ts").read_text(encoding="utf-8")
    assert types.splitlines()[1] == f"// {digest}", HOW


def test_every_operation_has_a_name_of_its_own() -> None:
    """Clients are made from these names."""
    operations = [operation["operationId"] for path in document()["paths"].values() for operation in path.values()]
    assert len(set(operations)) == len(operations)


def test_the_script_is_small() -> None:
    settings = Settings(pay_url="https://shop.example.com/pay")
    pages: Any = Pages(settings, Sandbox(settings))
    script = pages._embed
    assert len(script.packed) < SIZE_MAX
    assert gzip.decompress(script.packed) == script.plain
    assert EMBED_FACTS not in script.plain
    assert b'"pay":"https://shop.example.com/pay"' in script.plain


def test_it_loads_nothing_and_makes_no_code_of_text() -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    assert script.count(EMBED_FACTS.decode()) == 1
    assert not re.search(r"insertAdjacent|document\.write|\beval\(|new Function|\bimport[{\"'*]", script)
    # The parts that few sales need come from where the script itself comes from, under the version that it is of.
    assert len(re.findall(r"\bimport\(", script)) == len(re.findall(r"import\(`\$\{\w+\}/assets/\$\{", script)) == 1
    assert not re.search(r"https?://(?!www\.w3\.org/)", script), "no address of anybody else"
    for owner in ("Apache-2.0", "preact (MIT", "htm (Apache-2.0)"):
        assert owner in script.splitlines()[0], "the licences of what is in it"


def test_the_lock_names_no_registry() -> None:
    lock = json.loads((EMBED / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages
    assert all("resolved" not in package and package["integrity"] for package in packages.values())


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools as the lock has them, beside a copy of the sources. Optional in CI too: no package of ours brings npm,
    and that what was built belongs to its sources, the digests above show wherever they run."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("There is no Node, which is needed only to build the script anew")
    folder = tmp_path_factory.mktemp("tools")
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(EMBED / name, folder)
    got = subprocess.run(["npm", "ci"], cwd=folder, capture_output=True, text=True, check=False)
    if got.returncode != 0:
        pytest.skip(f"npm could not get the tools: {got.stderr.strip()[-200:]}")
    return folder / "node_modules"


@pytest.fixture
def checkout(tools: Path, tmp_path: Path) -> Path:
    """Another folder: what is built must not depend on where."""
    shutil.copytree(EMBED, tmp_path / "embed", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "embed" / "node_modules").symlink_to(tools)
    shutil.copytree(ROOT / "seckill" / "web" / "static", tmp_path / "seckill" / "web" / "static")
    shutil.copy(SCRIPT, tmp_path / "seckill" / "web")
    return tmp_path


def run(checkout: Path, *command: str, **options: Any) -> str:
    done = subprocess.run(command, cwd=checkout / "embed", capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def test_building_it_anew_makes_the_same_bytes(checkout: Path) -> None:
    run(checkout, "node", "build.mjs", "--check")
    described = json.dumps(runpy.run_path(str(EMBED / "describe.py"))["described"]())
    run(checkout, "node", "types.mjs", "--check", input=described)


def test_the_element_keeps_to_the_types_of_the_api(checkout: Path) -> None:
    run(checkout, "node_modules/.bin/tsc", "--project", "tsconfig.json")
    element = checkout / "embed" / "element.js"
    element.write_text(element.read_text().replace("order.state !== foundAs", "order.stat !== foundAs"))
    with pytest.raises(AssertionError, match="Property 'stat' does not exist"):
        run(checkout, "node_modules/.bin/tsc", "--project", "tsconfig.json")
