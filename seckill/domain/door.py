"""Who may press in a sale, from when on, and what they must bring. Pure. None of it decides about units."""

from dataclasses import dataclass, field
from enum import StrEnum

from seckill.domain.audience import EVERYBODY, Audience
from seckill.domain.line import NO_LINE, LineRules

# The greatest amount of numbers to try until the right one is found; on average it takes half as many. See
# `seckill/domain/proof_of_work.py`.
WORK_MIN = 1_000
WORK_MAX = 100_000_000
WORK_DEFAULT = 400_000


class PassKind(StrEnum):
    NONE = "none"
    WORK = "work"  # proof of work, solved by the page
    CHECK = "check"  # a captcha service


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    pass_kind: PassKind = PassKind.NONE
    work: int = WORK_DEFAULT
    audience: Audience = field(default=EVERYBODY)
    line: LineRules = field(default=NO_LINE)

    def differs_in(self, other: "Door") -> list[str]:
        """Returns the differences, under the names that users know."""
        names = {"pass_kind": "pass", "work": "pass_work", "audience": "audience"}
        return [public for name, public in names.items() if getattr(self, name) != getattr(other, name)]


# The door of most sales. If a claim finds that the door is this object, it need not look at anything else.
OPEN_DOOR = Door()
