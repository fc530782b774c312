import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_try import FEW, second_try

UNSTEADY = """
from pathlib import Path
def test_unsteady():
    been_here = Path(__file__).with_name("been-here")
    if not been_here.exists():
        been_here.touch()
        raise AssertionError
"""
BROKEN = "def test_broken(): raise AssertionError\n"


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time of a small run."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(root: Path, text: str) -> int:
    (root / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (root / "test_few.py").write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=root, check=False, capture_output=True)
    return second_try(done.returncode, root)


def test_what_passes_alone_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, UNSTEADY) == 0
    assert "UNSTEADY test_few.py::test_unsteady" in capfd.readouterr().out


def test_what_fails_again_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, UNSTEADY + BROKEN) == 1
    named = capfd.readouterr().out
    assert "UNSTEADY test_few.py::test_unsteady" in named
    assert "UNSTEADY test_few.py::test_broken" not in named


def test_many_failures_are_no_noise(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    many = "".join(BROKEN.replace("broken", f"broken_{i}") for i in range(FEW))
    assert run(tmp_path, UNSTEADY + many) == 1
    assert "Once more" not in capfd.readouterr().out


def test_a_run_that_went_wrong_by_itself_stays_wrong(tmp_path: Path) -> None:
    assert run(tmp_path, "syntax error") == 2
