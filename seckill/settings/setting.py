"""One setting: everything known about it besides its value."""

from dataclasses import dataclass, field
from typing import Any

from seckill.settings import kinds, provider_keys
from seckill.settings.redaction import Secret

PREFIX = "SECKILL_"


def about(kind: kinds.Kind, sentence: str, unit: str = "") -> dict[str, Any]:
    return {"kind": kind, "sentence": sentence, "unit": unit}


def kept(days: int, sentence: str) -> Any:
    """A field: how long something is kept."""
    return field(default=days, metadata=about(kinds.whole(1, 3_650), sentence, "days"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table."""

    name: str
    default: str  # as in an environment variable; empty: not set
    kind: kinds.Kind
    sentence: str
    unit: str

    @property
    def secret(self) -> bool:
        return self.kind in (*kinds.SECRET, *provider_keys.SECRET)

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def written(value: object) -> str:
    """Returns a setting's value as it would be written in the environment."""
    match value:
        case Secret():
            return value.reveal()
        case None:
            return ""
        case tuple():
            return ",".join(map(written, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)
