"""Operators, and what their roles let them do. Pure."""

from dataclasses import dataclass
from enum import StrEnum

NAME_MAX = 64
ROOT = "root"  # anyone who uses the key in the settings
SIGNED_IN = "sign-in"  # named instead of an operator for sessions
# Names under which the code itself acts. No person may have one of them.
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
    """The operator who makes a request."""

    name: str
    role: Role
