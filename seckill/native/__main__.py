"""Compiles the kernel if that is possible here; see `__init__.py`."""

import sys

from seckill.native import build
from seckill.native.kernel_choice import COMPILED

if "--remove" in sys.argv[1:]:
    COMPILED.unlink(missing_ok=True)
    said = "Claims are read in Python alone, from the next start on."
else:
    problem = build.compile_kernel(COMPILED)
    said = f"Claims are read in Python alone: {problem}" if problem else f"Compiled {COMPILED.name}."
sys.stdout.write(f"{said}\n")
