"""What an examination came to."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Health:
    says: str
    mend: list[str] = field(default_factory=list)  # promises do not hold until this is done
    advice: list[str] = field(default_factory=list)  # they do, but an operator should know
