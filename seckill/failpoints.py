"""Named places between two steps, where a test can make the process die.

SECKILL_FAILPOINTS="worker.read.after=kill:0.05,api.admit.after=kill" kills with that probability (1 if none is given).
Unarmed, a failpoint is one look at an empty dict.
"""

import os
import random
import signal
import sys

from seckill.errors import SettingsError

VARIABLE = "SECKILL_FAILPOINTS"
NAMES = frozenset(
    {
        "api.admit.before",
        "api.admit.after",
        "keeper.epoch.after",
        "keeper.fill.before",
        "keeper.outbox.after",
        "keeper.release.after",
        "keeper.retire.after",
        "lanes.give.after",
        "lanes.take.after",
        "ledger.add_round.inside",
        "ledger.capture.inside",
        "ledger.end.inside",
        "ledger.give_back.inside",
        "ledger.record.inside",
        "ledger.settle.inside",
        "payments.admit.after",
        "payments.capture.after",
        "payments.refund.after",
        "payments.release.after",
        "relay.read.after",
        "relay.confirm.after",
        "repair.step.before",
        "repair.step.after",
        "repair.record.after",
        "repair.fence.after",
        "worker.read.after",
        "worker.commit.after",
        "worker.settle.after",
    }
)

_armed: dict[str, float] = {}


def arm(spec: str) -> None:
    _armed.clear()
    for item in filter(None, spec.split(",")):
        name, _, action = item.partition("=")
        verb, _, chance = action.partition(":")
        if name not in NAMES or verb != "kill":
            raise SettingsError([f"{VARIABLE} knows no {item!r}: use NAME=kill[:PROBABILITY], {sorted(NAMES)}."])
        _armed[name] = float(chance or 1)


def reached(name: str) -> None:
    if _armed and random.random() < _armed.get(name, 0.0):  # noqa: S311 (chance, not a secret)
        # Straight to the file descriptor: it must be out before the process is gone.
        os.write(sys.stderr.fileno(), f"failpoint {name}: kill\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
