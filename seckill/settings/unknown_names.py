"""Finds variables that look like settings but are none: most are misspelt."""

import re
from collections.abc import Collection, Mapping

# Read where it is used: it makes processes die in tests and is not a setting.
_NOT_SETTINGS = frozenset({"SECKILL_FAILPOINTS"})
# What Kubernetes puts into every container near a Service called seckill or seckill-something.
_SERVICE_LINK = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_\w+)?$")


def unknown_names(environ: Mapping[str, str], known: Collection[str], prefix: str) -> list[str]:
    """Returns a sentence for each. `known`: the variables of all settings."""
    return [
        _sentence(name, known, prefix)
        for name, value in sorted(environ.items())
        if name.startswith(prefix) and name not in known and not _is_somebody_elses(name, value)
    ]


def _is_somebody_elses(name: str, value: str) -> bool:
    return name in _NOT_SETTINGS or bool(_SERVICE_LINK.search(name)) or value.startswith(("tcp://", "udp://"))


def _sentence(name: str, known: Collection[str], prefix: str) -> str:
    import difflib  # noqa: PLC0415 (loaded only for those who misspell a name)

    # Compared without the common prefix, which would make all names look similar.
    names = [variable.removeprefix(prefix) for variable in known]
    close = difflib.get_close_matches(name.removeprefix(prefix), names, n=1)
    return f"{name} is not a setting: " + (f"did you mean {prefix}{close[0]}?" if close else "remove it.")
