"""Makes the one document of a run, from which the table, the JSON and the report are made."""

import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from seckill import __version__
from seckill.audit.report import Verdict
from seckill.lab.chaos.event_judgement import repeated
from seckill.lab.chaos.evidence import Evidence
from seckill.lab.chaos.judgement import Judgement
from seckill.lab.chaos.schedule import Fault

COUNTS = ("oversold", "duplicates", "lost", "leaked")


def document(
    evidence: Evidence,
    judgement: Judgement,
    schedule: Sequence[Fault],
    *,
    servers: Mapping[str, str],
    starts: Mapping[str, int],
) -> dict[str, Any]:
    told, books = evidence.told, evidence.books
    counts = {check.name: check.count for check in judgement.checks}
    return {
        "verdict": str(judgement.verdict),
        **{name: counts[name] for name in COUNTS},
        "declared_lost": judgement.declared,
        "failed_and_told": judgement.failed,
        "version": __version__,
        "servers": dict(servers),
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "accepted": len(told.acks),
        "confirmed": sum(ack.confirmed for ack in told.acks.values()),
        "orders": len(books.rows),
        "states": dict(sorted(Counter(row.state for row in books.rows.values()).items())),
        "entries": dict(sorted(Counter(entry.state for entry in books.entries.values()).items())),
        "feed": {"events": len(evidence.feed.followed), "resumed": evidence.feed.resumed},
        "webhook": {
            "arrivals": len(evidence.arrivals),
            "refused": sum(not arrival.taken for arrival in evidence.arrivals),
            "repeated": repeated(evidence),
        },
        "answers": dict(told.codes.most_common()),
        "audits": dict(Counter(str(sight.verdict) for sight in evidence.sights)),
        "starts": dict(starts),
        "checks": [asdict(check) | {"verdict": str(check.verdict)} for check in judgement.checks],
        "recoveries": [asdict(recovery) for recovery in evidence.recoveries],
        "windows": {
            "required": evidence.required,
            "fired": dict(sorted(evidence.fired.items())),
        },
        "faults": [asdict(done) for done in sorted(evidence.done, key=lambda done: done.at_s)],
        "healing": evidence.healing and list(evidence.healing),
        "schedule": [fault.document() for fault in schedule],
        "rounds": [
            {
                "round": round_.round_id,
                "sale": round_.title,
                "total": round_.total,
                "available": round_.available,
                "sold": round_.live,
            }
            for round_ in books.rounds
        ],
        "series": {
            "accepted": _per_second(told.accepted_s),
            "backlog": [[at_s, waiting] for at_s, waiting in evidence.backlog],
        },
        "notes": evidence.notes,
    }


def _per_second(moments_s: Sequence[float]) -> list[int]:
    counted = Counter(int(at_s) for at_s in moments_s)
    return [counted[second] for second in range(max(counted, default=-1) + 1)]


def verdict(run: Mapping[str, Any]) -> str:
    facts = (
        f"{run['accepted']:,} orders accepted under {len(run['faults'])} faults and "
        f"{sum(run['windows']['fired'].values())} failpoints: {run['oversold']} oversold, {run['duplicates']} twice, "
        f"{run['lost']} lost, {run['leaked']} leaked."
    )
    words = {
        Verdict.HOLDS: "Everything held.",
        Verdict.BROKEN: "Something broke.",
        Verdict.UNKNOWN: "It could not be told whether everything held.",
    }
    return f"{words[Verdict(run['verdict'])]} {facts}"
