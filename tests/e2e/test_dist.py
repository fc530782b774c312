"""`make dist` makes the same bytes each time, and a wheel that runs far from this folder."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
import zipfile
from pathlib import Path

import httpx2
import pytest

import seckill
from seckill.local.tether import tethered
from tests.fixtures import missing
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
NAME = f"seckill-{seckill.__version__}"
WHEEL = f"{NAME}-py3-none-any.whl"
SDIST = f"{NAME}.tar.gz"
SOURCES = (".gitignore", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "scripts", "seckill")
EPOCH = "1790000000"


def built(tree: Path, folder: Path) -> Path:
    hatchling = Path(sys.executable).with_name("hatchling")
    if not hatchling.exists():
        missing("hatchling is not installed: make install does that")
    environ = os.environ | {"SOURCE_DATE_EPOCH": EPOCH}
    command = [str(tree / "scripts" / "build-dist"), str(hatchling), str(folder)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"[0-9a-f]{64}  (\S+)", done.stdout) == [WHEEL, SDIST]
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_another_folder_and_another_day_make_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    tree = tmp_path / "elsewhere"
    tree.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile  # without the times of the files
        copy(ROOT / name, tree / name)
    shutil.copymode(ROOT / "scripts" / "build-dist", tree / "scripts" / "build-dist")
    (tree / "seckill" / "web" / "app.py").touch()
    (tree / "notes.txt").write_text("nobody else's business")
    again = built(tree, tmp_path / "again")
    for name in (WHEEL, SDIST):
        assert (again / name).read_bytes() == (dist / name).read_bytes(), name


def test_nothing_but_the_package_is_in_them(dist: Path) -> None:
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        inside = wheel.namelist()
        described = wheel.read(f"{NAME}.dist-info/METADATA").decode()
    assert {name.partition("/")[0] for name in inside} == {"seckill", f"{NAME}.dist-info"}
    assert "seckill/py.typed" in inside
    assert "seckill/web/static/app/buyer.js" in inside
    assert set(re.findall(r"^Provides-Extra: (\w+)", described, re.MULTILINE)) >= {"all", "embedded", "postgres"}
    with tarfile.open(dist / SDIST) as sdist:
        tops = {name.split("/")[1] for name in sdist.getnames() if "/" in name}
    assert tops == {*SOURCES, "PKG-INFO"} - {"scripts"}


@pytest.fixture(scope="module")
def elsewhere(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and nothing else of ours. What that needs comes from this one: no network."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder, with_pip=False)
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*command, *options, str(dist / WHEEL)], check=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def environment() -> dict[str, str]:
    left_out = ("SECKILL_", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def test_the_installed_command_says_its_version(elsewhere: Path, tmp_path: Path) -> None:
    def said(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert said(str(elsewhere / "bin" / "seckill"), "--version") == seckill.__version__
    place = said(str(elsewhere / "bin" / "python"), "-c", "import seckill; print(seckill.__file__)")
    assert Path(place).is_relative_to(elsewhere)


def test_it_sells_until_the_first_page_answers(elsewhere: Path, folder: Path) -> None:
    printed = folder / "printed"
    command = [str(elsewhere / "bin" / "seckill"), "up", "--demo", "--port", "0", "--api", "1"]
    with printed.open("wb") as out, (folder / "log").open("wb") as log:
        up = subprocess.Popen(tethered(command), cwd=folder, env=environment(), stdout=out, stderr=log)
    try:
        give_up_s = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"seckill is running at (\S+)", printed.read_text())):
            assert up.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < give_up_s, (folder / "log").read_text()
            time.sleep(0.1)
        page = httpx2.get(f"{found[1]}/", timeout=PATIENCE_S)
        assert page.status_code == 200
        (asset,) = re.findall(r'<script type="module" src="([^"]+)">', page.text)
        assert httpx2.get(found[1] + asset, timeout=PATIENCE_S).status_code == 200
    finally:
        up.send_signal(signal.SIGINT)
        assert up.wait(PATIENCE_S) == 0
