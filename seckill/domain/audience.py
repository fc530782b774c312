"""Which buyers a sale is for, and which of them may buy earlier than others. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

GROUPS_MAX = 50
GROUP_LENGTH_MAX = 64
EARLY_MAX = 10
EARLY_MINUTES_MAX = 7 * 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyAccess:
    groups: tuple[str, ...]
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """A buyer is invited who is in one of the groups, on the list, or may come early. Without groups and list, everyone
    is invited."""

    groups: tuple[str, ...] = ()
    early: tuple[EarlyAccess, ...] = ()
    listed: bool = False

    @property
    def everybody(self) -> bool:
        return not (self.groups or self.listed)

    def early_ms(self, groups: Collection[str]) -> int:
        """Returns how much earlier than others a buyer in these groups may buy; 0: not earlier."""
        minutes = [early.minutes for early in self.early if not set(early.groups).isdisjoint(groups)]
        return 60_000 * max(minutes, default=0)

    def names(self, groups: Collection[str]) -> bool:
        return not set(self.groups).isdisjoint(groups)

    def admits(self, groups: Collection[str]) -> bool:
        """Whether a buyer in these groups is invited without being on the list."""
        return self.everybody or self.names(groups) or self.early_ms(groups) > 0

    def still_admits(self, groups: Collection[str] | None) -> bool:
        """The same for a buyer who was let in before. None: the groups were not kept; then a buyer who was let in by
        one stays."""
        if groups is None:
            return self.everybody or bool(self.groups or self.early)
        return self.admits(groups)

    def worth_keeping(self, groups: Collection[str]) -> tuple[str, ...]:
        """Returns those of the token's groups that are worth keeping while its buyer waits, since the audience may
        change meanwhile. Groups that it names now come first, and none is longer than an audience can ever name."""
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
