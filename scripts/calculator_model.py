"""Writes the constants of the capacity model for the calculator's page: `make calculator`."""

import json
from pathlib import Path

from seckill.lab.rehearsal.capacity import model

TARGET = Path(__file__).parents[1] / "docs" / "calculator-model.js"


def written() -> str:
    head = "// The constants of seckill/lab/rehearsal/capacity.py: `make calculator` writes this file.\n\n"
    return f"{head}globalThis.SECKILL_MODEL = {json.dumps(model(), indent=2)};\n"


if __name__ == "__main__":
    TARGET.write_text(written())
