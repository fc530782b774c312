"""The code of a version that was kept: what its roles need, for a clone without history to run it beside this one."""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

VERSIONS = Path(__file__).parents[1] / "fixtures" / "versions"
# No role loads these: the laboratory, the documents, and files for a browser or a shop's compiler.
LEFT_OUT = (
    "seckill/lab/",
    "seckill/web/help/",
    "seckill/web/static/vendor/swagger-ui/",
    "seckill/web/static/seckill-api.d.ts",
)


def archive(version: str) -> Path:
    return VERSIONS / version / "code.tar.xz"


def keep_code(version: str, tree: Path) -> None:
    """Keeps the code from the wheel of a tree: only the package, and the same bytes whenever it is kept."""
    hatchling = Path(sys.executable).with_name("hatchling")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(hatchling), "build", "--target", "wheel", "--directory", folder]
        subprocess.run(command, cwd=tree, check=True, capture_output=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as built, tarfile.open(archive(version), "w:xz", preset=9) as kept:
            for name in sorted(built.namelist()):
                if name.startswith("seckill/") and not name.startswith(LEFT_OUT):
                    content = built.read(name)
                    entry = tarfile.TarInfo(name)
                    entry.size = len(content)
                    kept.addfile(entry, BytesIO(content))


def unpack(version: str, folder: Path) -> Path:
    """Where it then stands, to be put on PYTHONPATH."""
    with tarfile.open(archive(version)) as kept:
        kept.extractall(folder, filter="data")
    return folder
