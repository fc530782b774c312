"""Finds out whether a server's append-only file can be relied on.

A file that is switched on while the server runs is complete only at the end of its first rewrite. A server that dies
before that comes back without the writes that it has answered meanwhile. INFO says `aof_enabled:1` all the time, and
shows this first rewrite like any other. Only earlier readings tell them apart: INFO counts the calls of CONFIG SET, and
the full copies that a primary has sent to replicas, which then begin their files anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# If the counts of commands may have been reset, an unchanged server cannot be told from a changed one.
_TOLD = ("cmdstat_config|set", "cmdstat_config|resetstat")
_NEVER_A_REPLICA = "0" * 40


@dataclass(frozen=True, slots=True)
class _Seen:
    counts: bool
    told: tuple[str, ...]  # how often it got such commands, and how often it was sent a full copy
    rewrite: str  # the number of the current rewrite; empty: none


class FileHistory:
    """What was seen of the servers' files, for each run of a server. A run ends with its process."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def counts(self, info: Mapping[str, str], copies_sent: str = "") -> bool:
        """Whether the server's file can be relied on. `copies_sent`: the full copies that its primary has sent to
        replicas."""
        run = info.get("run_id", "")
        told = (*(_calls(info, name) for name in _TOLD), copies_sent)
        under_way, waiting = info.get("aof_rewrite_in_progress") == "1", info.get("aof_rewrite_scheduled") == "1"
        rewrite = info.get("aof_rewrites", "") if under_way and not waiting else ""
        before = self._seen.get(run)
        if not under_way and not waiting:
            counts = True
        elif before is None:
            counts = _is_as_it_was_started(info)
        # the same rewrite goes on: switching the file off would have ended it
        elif rewrite and rewrite == before.rewrite:
            counts = before.counts
        else:
            counts = before.counts and told == before.told
        self._seen[run] = _Seen(counts, told, rewrite)
        return counts


def _is_as_it_was_started(info: Mapping[str, str]) -> bool:
    """Whether nothing has changed since the server was started: then it has the whole of its file."""
    shows_counts = any(name.startswith("cmdstat_") for name in info)
    never_told = shows_counts and not any(name in info for name in _TOLD)
    return never_told and info.get("role") == "master" and info.get("master_replid2") == _NEVER_A_REPLICA


def _calls(info: Mapping[str, str], name: str) -> str:
    return info.get(name, "").partition(",")[0]  # calls=3,usec=…
