"""One flaw: where it is planted, and the test that must turn red."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Looks for no flaw in particular: people, troubles and the engine's own use cases, in made-up time.
SIMULATION = "tests/simulation/test_simulation.py::test_whatever_happens_everything_holds_and_comes_to_rest[0]"


class Stale(Exception):
    """The list does not fit the code any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    name: str  # what is wrong with it
    trap: str  # the well-known mistake that it is one of; F: of flash sales, S: an attack, ours: one that we made once
    path: str  # of the file, under seckill/
    edits: Mapping[str, str]  # each text stands in the file exactly once, and is replaced
    caught_by: str  # a test of pytest's, with its parameters
    also: tuple[str, ...] = ()  # others, each of which has to notice as well

    @property
    def file(self) -> str:
        return f"seckill/{self.path}"

    @property
    def catchers(self) -> tuple[str, ...]:
        return (self.caught_by, *self.also)

    def plant(self, root: Path) -> str:
        """The flawed text of the file. Raises Stale."""
        text = (root / self.file).read_text()
        for good, flawed in self.edits.items():
            if (found := text.count(good)) != 1:
                raise Stale(f"{self.file} has {found} times, not once:\n{good}")
            text = text.replace(good, flawed)
        if self.path.endswith(".py"):
            ast.parse(text)
        return text


def without_parameters(test: str) -> str:
    return test.partition("[")[0]


def defines(root: Path, test: str) -> bool:
    """Whether there is such a test, `path::name` with or without parameters."""
    path, _, name = without_parameters(test).partition("::")
    file = root / path
    return (
        file.is_file() and re.search(rf"^(async )?def {re.escape(name)}\(", file.read_text(), re.MULTILINE) is not None
    )
