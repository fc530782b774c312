"""Whether each role of `seckill up` is well. The roles are separate processes and the metrics port belongs to their
parent, so this is derived from the metrics that they write into shared files, which can be read even when a role
hangs."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from seckill.operations.role_health import HUNG_AFTER_S, STUCK_AFTER_S, TELL_EVERY_S, HealthReport
from seckill.telemetry import Exposition

_Figures = Mapping[tuple[str, str], float]  # by metric, and by store or nothing


class SupervisedReport(msgspec.Struct, frozen=True):
    """What each role would answer."""

    roles: Mapping[str, HealthReport]

    @property
    def good(self) -> bool:
        return all(report.good for report in self.roles.values())

    def body(self) -> bytes:
        """Returns the status of the first role that is not well, and the reports of all."""
        first = min(self.roles.values(), key=lambda report: report.good)
        told = {role: report.told() for role, report in self.roles.items()}
        return msgspec.json.encode({"status": first.status, "roles": told}) + b"\n"


class SupervisedVitals:
    def __init__(self, roles: Sequence[str], exposition: Exposition) -> None:
        self._roles = roles
        self._exposition = exposition

    def health(self) -> SupervisedReport:
        return self._report(self._health)

    def readiness(self) -> SupervisedReport:
        return self._report(self._readiness)

    def _report(self, of: Callable[[_Figures], HealthReport]) -> SupervisedReport:
        figures: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
        for sample in self._exposition.samples():
            if "role" in sample.labels:
                figures[sample.labels["role"]][sample.name, sample.labels.get("store", "")] = sample.value
        return SupervisedReport({role: of(figures[role]) for role in self._roles})

    def _health(self, figures: _Figures) -> HealthReport:
        """Returns the health of a role; of several processes, that of the worst."""
        if not figures.get(("seckill_processes", "")):
            return HealthReport("missing", good=False)
        now_s = time.time()
        silent_s = now_s - figures.get(("seckill_alive_timestamp_seconds", ""), now_s)  # it has just been started
        if silent_s > HUNG_AFTER_S + TELL_EVERY_S:
            return HealthReport("hung", good=False, seconds=round(silent_s, 1))
        runs_s = figures.get(("seckill_step_seconds", ""), 0.0)
        if runs_s > STUCK_AFTER_S:
            return HealthReport("stuck", good=False, seconds=round(runs_s, 1))
        return HealthReport("ok")

    def _readiness(self, figures: _Figures) -> HealthReport:
        health = self._health(figures)
        if not health.good:
            return health
        ready = figures.get(("seckill_ready", ""))
        if ready is None:
            return HealthReport("starting", good=False)
        gate, ledger = ("up" if figures.get(("seckill_store_up", store)) else "away" for store in ("gate", "ledger"))
        return HealthReport("ready" if ready else "not_ready", good=bool(ready), gate=gate, ledger=ledger)
