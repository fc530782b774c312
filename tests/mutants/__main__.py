"""Plants every flaw, one at a time, into a copy of the tree, and runs the test that must turn red.

python -m tests.mutants [WORD …]          only those with one of these in number, name or file; "several words" are what
                                          stands in a name like that, or else each of them a word
python -m tests.mutants --part 1/2        every second of them, from the first on: several parts can be run at once
python -m tests.mutants --kept FILE       notes there what was caught, and leaves out what is noted: interrupted, it goes
                                          on; several parts may share it. A changed file, flaw or catcher is run again
python -m tests.mutants --by TEST         which of them would that test catch?

Exit 0: all tests are green without a flaw, and each flaw turns its test red. A test that cannot be found, a flaw that
does not compile or a server that cannot be had is no catch.
"""

import argparse
import hashlib
import importlib
import importlib.util
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import MUTANTS
from tests.mutants.mutant import ROOT, Mutant, without_parameters

# Loaded once, and there in every child: most of a short test is the loading of these. Nothing of ours is among them.
LOADED = [
    "aiormq",
    "aiosqlite",
    "alembic.command",
    "asyncpg",
    "httpx2",
    "hypothesis",
    "jwt",
    "msgspec",
    "prometheus_client",
    "redis.asyncio",
    "sqlalchemy.ext.asyncio",
    "starlette.applications",
    "structlog",
    "uvicorn",
]
# A compiled kernel as well, so that flaws are planted into what runs.
LEFT_OUT = (".git", ".venv", "*.so", "__pycache__", "*_cache", "*.egg-info", "node_modules")
# A test that does not end has noticed nothing. Much longer than any needs, so that a busy machine is no catcher.
WITHIN_S = 900
# A test that is red for one of these has met a flaw that is no program, not one that it was written to find.
NO_PROGRAM = ("NameError", "SyntaxError", "ImportError", "AttributeError", "TypeError", "UnboundLocalError")
# Red because the machine had too much to do. It is tried again.
NO_TIME = ("Timeout connecting to server", "did not answer within", "could not be started")
TOO_BUSY = "the machine was too busy"
TRIES = 3
NO_SCRIPT = ("compiling script", "Script attempted to access", "attempt to call", "attempt to index")


@dataclass(frozen=True, slots=True)
class Verdict:
    caught: bool
    why: str
    took_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int | None  # pytest's; None: it did not end
    failures: Mapping[str, str]  # which tests are red, and why
    others: Sequence[str]  # what went wrong around tests


class Tree:
    """A copy of the sources, to be spoilt."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self._report = folder / "report.xml"
        self._changes = 0
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        if (ROOT / ".venv").exists():
            (self.root / ".venv").symlink_to(ROOT / ".venv")
        for name in LOADED:
            importlib.import_module(name)
        if self._in_a_child(_tests_the_copy, str(self.root), within_s=60) != 0:
            raise SystemExit("The copy is not what would be tested: is another seckill on PYTHONPATH?")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.write_text(text)
        self._changes += 1
        # Python knows by its second whether a file was changed.
        later_s = time.time() + self._changes
        os.utime(file, (later_s, later_s))

    def run(self, tests: Sequence[str], within_s: float) -> Outcome:
        self._report.unlink(missing_ok=True)
        options = ["-q", "-p", "no:cacheprovider", "--timeout=0", f"--junitxml={self._report}"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are loaded already
        code = self._in_a_child(pytest.main, [*options, *tests], within_s=within_s)
        if code is None:
            return Outcome(None, {}, [])
        if not self._report.exists():
            return Outcome(code, {}, [self.root.with_name("output").read_text()[-1000:]])
        report = ElementTree.parse(self._report).getroot()
        failures = {_id(case): _told(node) for case in report.iter("testcase") for node in case.iter("failure")}
        others = [_told(node) for kind in ("error", "skipped") for node in report.iter(kind)]
        return Outcome(code, failures, others)

    def _in_a_child(self, call: Callable[[Any], int], argument: object, within_s: float) -> int | None:
        """Returns what the call returns in a process that knows nothing of ours but the copy. None: it did not end."""
        child = multiprocessing.get_context("fork").Process(target=_alone, args=(self.root, call, argument))
        child.start()
        child.join(within_s)
        if child.exitcode is None:
            assert child.pid is not None
            os.killpg(child.pid, signal.SIGKILL)  # with the servers that it has started
            child.join()
            return None
        return child.exitcode


def _alone(root: Path, call: Callable[[Any], int], argument: object) -> None:
    os.setsid()
    os.chdir(root)
    said = os.open(root.with_name("output"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(said, descriptor)
    os.environ["PYTHONPATH"] = str(root)
    os.environ.pop("CI", None)
    sys.dont_write_bytecode = False  # what did not change need not be compiled again for every flaw
    sys.path[:] = [str(root), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "seckill")]:
        del sys.modules[name]
    sys.exit(call(argument))


def _tests_the_copy(root: str) -> int:
    spec = importlib.util.find_spec("seckill")
    return 0 if spec is not None and spec.origin is not None and Path(spec.origin).is_relative_to(root) else 1


def _id(case: ElementTree.Element) -> str:
    return f"{(case.get('classname') or '').replace('.', '/')}.py::{case.get('name')}"


def _told(node: ElementTree.Element) -> str:
    return f"{node.get('message') or ''}\n{node.text or ''}"


def judge(tree: Tree, mutant: Mutant, catchers: Sequence[str]) -> Verdict:
    """Caught if each of the tests turns red."""
    began_s = time.monotonic()
    good = (tree.root / mutant.file).read_text()
    tree.write(mutant.file, mutant.plant(tree.root))
    try:
        reasons = []
        for test in catchers:
            for _ in range(TRIES):
                outcome = tree.run(["-x", test], WITHIN_S)
                told = list(outcome.failures.values())
                objection = objection_to(outcome.code, told, outcome.others)
                if objection != TOO_BUSY:
                    break
            if objection:
                return Verdict(False, f"{test}: {objection}", time.monotonic() - began_s)
            reasons.append(told[0].splitlines()[0][:100])
    finally:
        tree.write(mutant.file, good)
    return Verdict(True, " | ".join(reasons), time.monotonic() - began_s)


def objection_to(code: int | None, failures: Sequence[str], others: Sequence[str]) -> str:
    """Empty if the flaw was caught for what it is."""
    if code == 0 and not others:
        return "nobody noticed"
    if code is None:
        return f"the test did not end within {WITHIN_S} s"
    if code != 1 or not failures:
        return f"the test could not be run: exit code {code}, {' '.join(others).strip()[:200]}"
    told = failures[0].partition("\n")[0]  # what follows is source text, with any words in it
    if any(words in told for words in NO_TIME):
        return TOO_BUSY
    if told.startswith(NO_PROGRAM) or any(words in told for words in NO_SCRIPT):
        return f"the flaw is no program: {told.splitlines()[0][:200]}"
    return ""


class Kept:
    """Remembers what was caught, by the file without the flaw, the flaw, and its catchers as they stood."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known = set(file.read_text().split()) if file is not None and file.exists() else set[str]()

    def has(self, mutant: Mutant) -> bool:
        return fingerprint(mutant) in self._known

    def add(self, mutant: Mutant) -> None:
        if self._file is not None:
            self._file.parent.mkdir(exist_ok=True)
            with self._file.open("a") as file:
                file.write(f"{fingerprint(mutant)}\n")  # short enough to be written at once, also beside others


def fingerprint(mutant: Mutant, root: Path = ROOT) -> str:
    files = [mutant.file, *(without_parameters(test).partition("::")[0] for test in mutant.catchers)]
    stood = [repr((mutant.name, mutant.edits, mutant.catchers)), *((root / file).read_text() for file in files)]
    return hashlib.blake2b("\0".join(stood).encode(), digest_size=16).hexdigest()


def check_without_flaws(tree: Tree, tests: Sequence[str]) -> bool:
    began_s = time.monotonic()
    print(f"without a flaw: {len(tests)} tests …", flush=True)
    for _ in range(TRIES):
        outcome = tree.run(tests, 600 + 10 * len(tests))
        tests = list(outcome.failures)
        if not tests or not all(objection_to(1, [told], []) == TOO_BUSY for told in outcome.failures.values()):
            break  # otherwise the machine had too much to do, and those are tried again
    for told in (*outcome.failures.values(), *outcome.others):
        print(told)
    green = outcome.code == 0 and not outcome.others
    print(f"without a flaw: {'green' if green else 'NOT GREEN'}, {time.monotonic() - began_s:.0f} s")
    return green


def chosen(phrases: Sequence[str]) -> list[Mutant]:
    """All without a phrase. One that no flaw has as it stands is several words, and each of them chooses."""
    words: list[str] = []
    for phrase in phrases:
        words += [phrase] if any(_has(mutant, phrase) for mutant in MUTANTS) else phrase.split()
    asked_for = any(phrase.strip() for phrase in phrases)
    return [m for m in MUTANTS if not asked_for or any(_has(m, word) for word in words)]


def _has(mutant: Mutant, word: str) -> bool:
    return word == mutant.trap or word in mutant.path or word in mutant.name


def part(text: str) -> tuple[int, int]:
    which, _, many = text.partition("/")
    if not 1 <= int(which) <= int(many):
        raise ValueError(text)
    return int(which), int(many)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("words", nargs="*", help="only flaws with one of these in number, name or file")
    parser.add_argument("--by", help="see which of them this test would catch, instead of those in the list")
    parser.add_argument("--part", type=part, default=(1, 1), help="which part of how many, such as 1/2")
    parser.add_argument("--kept", type=Path, help="file of what was caught already")
    wanted = parser.parse_args()
    first, parts = wanted.part
    if not (asked := chosen(wanted.words)):
        parser.error("no flaw has one of these words in its number, name or file")
    kept = Kept(wanted.kept if wanted.by is None else None)
    mutants = [mutant for mutant in asked if not kept.has(mutant)][first - 1 :: parts]
    print(f"{len(mutants)} of {len(asked)} flaws to plant", flush=True)
    if not mutants:  # without a test to run, pytest would run them all
        return 0
    catchers = {m.name: m.catchers if wanted.by is None else (wanted.by,) for m in mutants}
    began_s = time.monotonic()
    missed: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="seckill-mutants-") as folder:
        tree = Tree(Path(folder))
        sound = check_without_flaws(tree, sorted({test for tests in catchers.values() for test in tests}))
        for number, mutant in enumerate(mutants, 1):
            verdict = judge(tree, mutant, catchers[mutant.name])
            word = "caught" if verdict.caught else "MISSED"
            print(
                f"{number:3}/{len(mutants)} {word} {verdict.took_s:5.1f} s  {mutant.trap:4} {mutant.name}", flush=True
            )
            print(f"{'':22}{verdict.why}", flush=True)
            if verdict.caught:
                kept.add(mutant)
            else:
                missed.append(mutant)
    kinds = Counter(test.split("/")[1] for m in mutants if m not in missed for test in catchers[m.name])
    print(f"\n{len(mutants) - len(missed)} of {len(mutants)} caught in {time.monotonic() - began_s:.0f} s, by tests of")
    print(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    for mutant in missed:
        print(f"MISSED: {mutant.trap} {mutant.name} ({mutant.file})")
    return 0 if sound and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
