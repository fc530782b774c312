"""Named places where a test, or `seckill chaos`, can make a process die, hang, or believe that a server is away.

SECKILL_FAILPOINTS="worker.ledger.record.after=drop:0.05,api.gate.admit.before=stall@2" arms them. Actions:

    kill            the process is gone at once, as with kill -9
    stall@SECONDS   it goes on later
    raise           the call is not made; the caller hears that the server is away        (boundaries only)
    drop            the call is made and its answer lost; the caller hears the same       (boundaries only, `after`)

each with the :PROBABILITY that it happens (1 if none is given). Two kinds of places have names: steps inside a use case
or a transaction, listed here, and the boundaries to the servers, see `bootstrap/boundary_failpoints.py`.
Unarmed, a step is one look at an empty dict, and a boundary is not there at all.
"""

import os
import random
import re
import signal
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from seckill.errors import SettingsError

VARIABLE = "SECKILL_FAILPOINTS"
STEPS = frozenset(
    {
        "checkouts.call_off.after",
        "checkouts.made",
        "keeper.epoch.after",
        "keeper.fill.before",
        "keeper.retire.after",
        "lanes.give.after",
        "lanes.take.after",
        "ledger.act.inside",
        "ledger.add_codes.inside",
        "ledger.add_round.inside",
        "line.close.inside",
        "line.join.inside",
        "ledger.capture.inside",
        "ledger.complete_upload.inside",
        "ledger.end.inside",
        "ledger.give.inside",
        "ledger.give_back.inside",
        "ledger.record.inside",
        "ledger.redeem.inside",
        "ledger.settle.inside",
        "payments.admit.after",
        "payments.capture.after",
        "payments.refund.after",
        "payments.release.after",
        "repair.step.before",
        "repair.step.after",
        "repair.record.after",
        "repair.fence.after",
        "unwritten.record.before",
        "webhooks.send.after",
    }
)


class Verb(StrEnum):
    KILL = "kill"
    STALL = "stall"
    RAISE = "raise"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Action:
    verb: Verb
    seconds: float
    chance: float


_ACTION = re.compile(
    r"(kill|raise|drop|stall@(?P<seconds>\d{1,4}(\.\d+)?))(:(?P<chance>0?\.\d+|[01](\.0+)?))?", re.ASCII
)

_armed: dict[str, Action] = {}


def arm(spec: str, boundaries: Collection[str] = ()) -> None:
    """`boundaries`: the names that are known beside the steps."""
    actions = {}
    for item in filter(None, spec.split(",")):
        name, _, text = item.partition("=")
        action = _action(text)
        if action is None or not _fits(name, action.verb, boundaries):
            raise SettingsError([_complaint(item, boundaries)])
        actions[name] = action
    _armed.clear()
    _armed.update(actions)


def _action(text: str) -> Action | None:
    found = _ACTION.fullmatch(text)
    if not found:
        return None
    verb = Verb(found[1].partition("@")[0])
    return Action(verb, float(found["seconds"] or 0), float(found["chance"] or 1))


def _fits(name: str, verb: Verb, boundaries: Collection[str]) -> bool:
    if name in STEPS:
        return verb in (Verb.KILL, Verb.STALL)
    return name in boundaries and (verb != Verb.DROP or name.endswith(".after"))


def _complaint(item: str, boundaries: Collection[str]) -> str:
    name = item.partition("=")[0]
    if name in STEPS:
        return f"{VARIABLE} cannot do {item!r}: use {name}=kill or {name}=stall@SECONDS, with :PROBABILITY if you like."
    if name in boundaries:
        return (
            f"{VARIABLE} cannot do {item!r}: use kill, stall@SECONDS, raise or, with `after`, drop, "
            "with :PROBABILITY if you like."
        )
    return f"{VARIABLE} knows no {name!r}: use ROLE.PORT.METHOD.before or .after, or one of {', '.join(sorted(STEPS))}."


def armed() -> bool:
    return bool(_armed)


def fires(name: str) -> Action | None:
    """What has to happen here and now. It is announced already."""
    action = _armed.get(name)
    if action is None or random.random() >= action.chance:  # noqa: S311 (chance, not a secret)
        return None
    # Straight to the file descriptor: it must be out before the process is gone.
    os.write(sys.stderr.fileno(), f"failpoint {name}: {action.verb}\n".encode())
    if action.verb == Verb.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    return action


def reached(step: str) -> None:
    """Stalling here stops the whole process, as SIGSTOP would: a step may be anywhere, also in a transaction."""
    if _armed and (action := fires(step)):
        time.sleep(action.seconds)
