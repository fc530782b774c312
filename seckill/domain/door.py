"""Who may press in a sale, from when on, and what they must bring. Pure. None of it decides about units."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from seckill.domain.line import NO_LINE, LineRules

GROUPS_MAX = 50
GROUP_LENGTH_MAX = 64
EARLY_MAX = 10
EARLY_MINUTES_MAX = 7 * 24 * 60
# Numbers to try until the right one is found, at most; on average half as many. See `seckill/domain/proof_of_work.py`.
WORK_MIN = 1_000
WORK_MAX = 100_000_000
WORK_DEFAULT = 400_000


class PassKind(StrEnum):
    NONE = "none"
    WORK = "work"  # proof of work, solved by the page
    CHECK = "check"  # a captcha service


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyAccess:
    groups: tuple[str, ...]
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who is in one of the groups or on the list is invited, and so is who may come early. Without groups and list,
    everybody is."""

    groups: tuple[str, ...] = ()
    early: tuple[EarlyAccess, ...] = ()
    listed: bool = False

    @property
    def everybody(self) -> bool:
        return not (self.groups or self.listed)

    def early_ms(self, groups: Collection[str]) -> int:
        """How long before the others somebody of these groups may buy; 0: not before them."""
        minutes = [early.minutes for early in self.early if not set(early.groups).isdisjoint(groups)]
        return 60_000 * max(minutes, default=0)

    def names(self, groups: Collection[str]) -> bool:
        return not set(self.groups).isdisjoint(groups)

    def admits(self, groups: Collection[str]) -> bool:
        """Whether somebody of these groups is invited whoever is on the list."""
        return self.everybody or self.names(groups) or self.early_ms(groups) > 0

    def worth_keeping(self, groups: Collection[str]) -> tuple[str, ...]:
        """Of what a token says, for somebody who waits: an audience may change meanwhile. Those that it names now come
        first, and none is longer than one that it can ever name."""
        if not groups:
            return ()
        named = {*self.groups, *(group for early in self.early for group in early.groups)}
        fit = sorted(
            (group for group in groups if len(group) <= GROUP_LENGTH_MAX), key=lambda it: (it not in named, it)
        )
        return tuple(fit[:GROUPS_MAX])

    @property
    def early_s_max(self) -> int:
        return 60 * max((early.minutes for early in self.early), default=0)


EVERYBODY = Audience()


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    pass_kind: PassKind = PassKind.NONE
    work: int = WORK_DEFAULT
    audience: Audience = field(default=EVERYBODY)
    line: LineRules = field(default=NO_LINE)

    def differs_in(self, other: "Door") -> list[str]:
        """Under the names that users know."""
        names = {"pass_kind": "pass", "work": "pass_work", "audience": "audience"}
        return [public for name, public in names.items() if getattr(self, name) != getattr(other, name)]


# Of most sales. A claim looks whether the door is this one, and then at nothing else.
OPEN_DOOR = Door()
