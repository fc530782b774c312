"""Chooses the compiled kernel: only one that was made from these very sources, so that an upgrade never goes on using
the previous version's kernel."""

import hashlib
import importlib.util
import sysconfig
from pathlib import Path
from types import ModuleType

SOURCES = tuple(Path(__file__).with_name(name) for name in ("kernel.c", "ring.c"))
# Named for this version of Python and this kind of machine: no other would load it.
COMPILED = Path(__file__).with_name(f"kernel{sysconfig.get_config_var('EXT_SUFFIX') or '.so'}")


def digest() -> str:
    return hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()


def load(compiled: Path = COMPILED) -> ModuleType | None:
    """Returns None if there is no kernel or it cannot be used."""
    if not compiled.exists():
        return None
    try:
        spec = importlib.util.spec_from_file_location("seckill.native.kernel", compiled)
        if spec is None or spec.loader is None:
            return None
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found if digest() == found.SOURCE else None
    except (ImportError, OSError):
        return None


KERNEL = load()
