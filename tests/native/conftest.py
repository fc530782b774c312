"""The kernel, compiled from the source as it is here. Whether one is installed does not matter."""

from pathlib import Path
from types import ModuleType

import pytest

from seckill.native import kernel_choice
from seckill.native.build import compile_kernel
from tests.fixtures import missing


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kernel") / kernel_choice.COMPILED.name
    problem = compile_kernel(made)
    if problem is not None:
        missing(f"The kernel cannot be compiled: {problem}")
    return made


@pytest.fixture(scope="session")
def kernel(compiled: Path) -> ModuleType:
    found = kernel_choice.load(compiled)
    assert found is not None
    return found
