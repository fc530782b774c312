"""Plants every flaw, one at a time, into a copy of the tree, and runs the test that must turn red.

python -m tests.mutants [WORD …]   only those with one of the words in trap, name, file or test

Exit 0: all tests are green without a flaw, and each flaw turns its test red. A test that cannot be found, a flaw that
does not compile or a server that cannot be had is no catch.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

LEFT_OUT = (".git", ".venv", "__pycache__", "*_cache", "*.egg-info", "node_modules")
WITHIN_S = 120
# A test that is red for one of these has met a flaw that is no program, not one that it was written to find.
NO_PROGRAM = ("NameError", "SyntaxError", "ImportError", "AttributeError", "TypeError", "UnboundLocalError")
NO_SCRIPT = ("compiling script", "Script attempted to access", "attempt to call", "attempt to index")


@dataclass(frozen=True, slots=True)
class Verdict:
    caught: bool
    why: str
    took_s: float


class Tree:
    """A copy of the sources, to be spoilt."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self._report = folder / "report.xml"
        self._changes = 0
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        if (ROOT / ".venv").exists():
            (self.root / ".venv").symlink_to(ROOT / ".venv")
        self._environ = os.environ | {"PYTHONPATH": str(self.root)}
        self._environ.pop("CI", None)
        asked = [sys.executable, "-c", "import seckill; print(seckill.__file__)"]
        found = subprocess.run(asked, cwd=self.root, env=self._environ, capture_output=True, text=True, check=True)
        if not Path(found.stdout.strip()).is_relative_to(self.root):
            raise SystemExit(f"The copy is not what is tested, but {found.stdout}")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.write_text(text)
        self._changes += 1
        # Python knows by its second whether a file was changed.
        later_s = time.time() + self._changes
        os.utime(file, (later_s, later_s))

    def run(self, tests: Sequence[str], within_s: float) -> tuple[int | None, list[str], list[str]]:
        """pytest's exit code, None if it did not end; why tests failed; and what went wrong around them."""
        self._report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=short"]
        command += [f"--timeout={WITHIN_S // 2}", f"--junitxml={self._report}", *tests]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self._environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(within_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, [], []
        if not self._report.exists():
            return code, [], ["pytest made no report"]
        cases = ElementTree.parse(self._report).getroot()
        failures = [_told(node) for node in cases.iter("failure")]
        others = [_told(node) for kind in ("error", "skipped") for node in cases.iter(kind)]
        return code, failures, others


def _told(node: ElementTree.Element) -> str:
    return f"{node.get('message') or ''}\n{node.text or ''}"


def judge(tree: Tree, mutant: Mutant) -> Verdict:
    began_s = time.monotonic()
    good = (tree.root / mutant.file).read_text()
    tree.write(mutant.file, mutant.plant(ROOT))
    try:
        code, failures, others = tree.run([mutant.caught_by], WITHIN_S)
    finally:
        tree.write(mutant.file, good)
    why = objection_to(code, failures, others)
    return Verdict(not why, why or failures[0].splitlines()[0][:100], time.monotonic() - began_s)


def objection_to(code: int | None, failures: list[str], others: list[str]) -> str:
    """Empty if the flaw was caught for what it is."""
    if code == 0 and not others:
        return "nobody noticed"
    if code is None:
        return f"the test did not end within {WITHIN_S} s"
    if code != 1 or not failures:
        return f"the test could not be run: exit code {code}, {' '.join(others).strip()[:200]}"
    told = failures[0]
    if told.startswith(NO_PROGRAM) or any(words in told for words in NO_SCRIPT):
        return f"the flaw is no program: {told.splitlines()[0][:200]}"
    return ""


def check_without_flaws(tree: Tree, mutants: Sequence[Mutant]) -> bool:
    tests = sorted({mutant.caught_by for mutant in mutants})
    began_s = time.monotonic()
    print(f"without a flaw: {len(tests)} tests …", flush=True)
    code, failures, others = tree.run(tests, 60 + 10 * len(tests))
    for told in (*failures, *others):
        print(told)
    print(f"without a flaw: {'green' if code == 0 and not others else 'NOT GREEN'}, {time.monotonic() - began_s:.0f} s")
    return code == 0 and not others


def main(words: Sequence[str]) -> int:
    mutants = [
        m for m in MUTANTS if not words or any(w in (m.trap, m.name, m.file, m.test) or w in m.name for w in words)
    ]
    began_s = time.monotonic()
    verdicts: list[tuple[Mutant, Verdict]] = []
    with tempfile.TemporaryDirectory(prefix="seckill-mutants-") as folder:
        tree = Tree(Path(folder))
        sound = check_without_flaws(tree, mutants)
        for number, mutant in enumerate(mutants, 1):
            verdict = judge(tree, mutant)
            verdicts.append((mutant, verdict))
            word = "caught" if verdict.caught else "MISSED"
            print(
                f"{number:3}/{len(mutants)} {word} {verdict.took_s:5.1f} s  {mutant.trap:4} {mutant.name}", flush=True
            )
            print(f"{'':22}{verdict.why}", flush=True)
    missed = [mutant for mutant, verdict in verdicts if not verdict.caught]
    kinds = Counter(mutant.test.split("/")[1] for mutant, verdict in verdicts if verdict.caught)
    print(f"\n{len(mutants) - len(missed)} of {len(mutants)} caught in {time.monotonic() - began_s:.0f} s, by tests of")
    print(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    for mutant in missed:
        print(f"MISSED: {mutant.trap} {mutant.name} ({mutant.file}), {mutant.caught_by}")
    return 0 if sound and not missed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
