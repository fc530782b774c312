"""Compiles `kernel.c` and `ring.c` with the compiler of this machine, if there is one."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from seckill.native.kernel_choice import SOURCES, digest, load

_OPTIONS = ("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fstack-protector-strong", "-Wall", "-Werror")
COMPILE_S_MAX = 120


def compile_kernel(to: Path) -> str | None:
    """Compiles the kernel. Returns why that failed, as the end of a sentence, or None. A running process keeps what it
    has loaded."""
    compiler = _compiler()
    if compiler is None:
        return "there is no C compiler here."
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "the headers of Python are missing (on Debian: python3-dev)."
    try:
        with tempfile.TemporaryDirectory(dir=to.parent) as folder:
            made = Path(folder, to.name)
            done = subprocess.run(  # noqa: S603 (what is run is the compiler that Python was built with, or CC)
                [*compiler, *_OPTIONS, *_of_system(), *_include(), *map(str, SOURCES), "-o", str(made)],
                capture_output=True,
                text=True,
                timeout=COMPILE_S_MAX,
            )
            if done.returncode != 0:
                return f"{compiler[0]} says {done.stderr.strip() or done.returncode}."
            if load(made) is None:
                return "what was compiled cannot be loaded."
            made.replace(to)  # atomic: a process that is just starting finds the old kernel or the new one
    except (OSError, subprocess.SubprocessError) as error:
        return f"{error}."
    return None


def _compiler() -> list[str] | None:
    wanted = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    for command in (wanted, ["cc"]):
        if shutil.which(command[0]):
            return command
    return None


def _include() -> list[str]:
    return [f'-DSOURCE="{digest()}"', f"-I{sysconfig.get_path('include')}"]


def _of_system() -> list[str]:
    return ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
