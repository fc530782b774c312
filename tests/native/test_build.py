"""A kernel is used where it can be compiled, and only if it was made from this very source."""

from pathlib import Path

import pytest

from seckill.native import build, kernel_choice


def test_a_kernel_of_another_source_is_not_used(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel_choice.load(compiled) is not None
    monkeypatch.setattr(kernel_choice, "digest", lambda: "0" * 64)
    assert kernel_choice.load(compiled) is None


def test_what_is_no_kernel_is_not_used(tmp_path: Path) -> None:
    broken = tmp_path / kernel_choice.COMPILED.name
    assert kernel_choice.load(broken) is None
    broken.write_bytes(b"\x7fELF, but no more")
    assert kernel_choice.load(broken) is None


def test_without_a_compiler_it_says_so_and_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    to = tmp_path / "kernel.so"
    assert build.compile_kernel(to) == "there is no C compiler here."
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho no such option >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    problem = build.compile_kernel(to)
    assert problem is not None
    assert "no such option" in problem or "headers of Python" in problem
    assert not to.exists()
    assert build.compile_kernel(tmp_path / "nowhere" / "kernel.so") is not None
