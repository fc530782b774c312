"""Does a server's append-only file count?

A file that is switched on counts from the end of its first rewrite: a server that dies before that comes back without
what it has answered meanwhile. INFO says `aof_enabled:1` all the time, and shows this first rewrite as it shows any
other. Which of the two it is follows from what was there before: INFO counts the calls of CONFIG SET, and the copies of
everything that a primary has sent to replicas, which then begin their files anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# A server that may have reset the counts of its commands is not known to have been left as it was.
_TOLD = ("cmdstat_config|set", "cmdstat_config|resetstat")
_NEVER_A_REPLICA = "0" * 40


@dataclass(frozen=True, slots=True)
class _Seen:
    counts: bool
    told: tuple[str, ...]  # how often it was told something, and how often it was sent a copy of everything
    rewrite: str  # the number of the rewrite that is under way; empty: none is


class FileHistory:
    """What was seen of the servers' files, by the runs of the servers: a run ends with its process."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def counts(self, info: Mapping[str, str], copies_sent: str = "") -> bool:
        """`copies_sent`: to replicas, by the primary of this one."""
        run = info.get("run_id", "")
        told = (*(_calls(info, name) for name in _TOLD), copies_sent)
        under_way, waiting = info.get("aof_rewrite_in_progress") == "1", info.get("aof_rewrite_scheduled") == "1"
        rewrite = info.get("aof_rewrites", "") if under_way and not waiting else ""
        before = self._seen.get(run)
        if not under_way and not waiting:
            counts = True
        elif before is None:
            counts = _is_as_it_was_started(info)
        elif rewrite and rewrite == before.rewrite:  # switching the file off would have ended it
            counts = before.counts
        else:
            counts = before.counts and told == before.told
        self._seen[run] = _Seen(counts, told, rewrite)
        return counts


def _is_as_it_was_started(info: Mapping[str, str]) -> bool:
    """A server that is started with its file has the whole of it."""
    shows_counts = any(name.startswith("cmdstat_") for name in info)
    never_told = shows_counts and not any(name in info for name in _TOLD)
    return never_told and info.get("role") == "master" and info.get("master_replid2") == _NEVER_A_REPLICA


def _calls(info: Mapping[str, str], name: str) -> str:
    return info.get(name, "").partition(",")[0]  # calls=3,usec=…
