"""Operators: who they are, and what their role lets them do. Pure."""

from dataclasses import dataclass
from enum import StrEnum

NAME_MAX = 64
ROOT = "root"  # whoever has the key of the settings
SIGNED_IN = "sign-in"  # what made it, in the place of who
# What the code itself does without being asked, and what no person may be called.
RESERVED = frozenset({ROOT, "audit", "command-line", SIGNED_IN})


class Role(StrEnum):
    """Each may do what those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def may_act_as(self, needed: "Role") -> bool:
        return _RANK[self] >= _RANK[needed]


_RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Who is asking."""

    name: str
    role: Role
