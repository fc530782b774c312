"""API processes that share their cores with the worker give way to it."""

import subprocess
import sys

from seckill.local.cpu_precedence import NICE, SESSION

GIVE_WAY = """
import os
from seckill.local.cpu_precedence import SESSION, give_way
os.setsid()
before = os.nice(0)
give_way()
print(os.nice(0) - before, SESSION.read_text().split()[-1] if SESSION.exists() else "none")
"""


def test_the_process_and_its_session_stand_back() -> None:
    said = subprocess.run([sys.executable, "-c", GIVE_WAY], capture_output=True, text=True, check=True).stdout.split()
    assert said == [str(NICE), str(NICE) if SESSION.exists() else "none"]
