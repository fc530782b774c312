"""The result of an examination."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Health:
    says: str
    mend: list[str] = field(default_factory=list)  # promises do not hold until these are done
    advice: list[str] = field(default_factory=list)  # promises hold, but an operator should know
