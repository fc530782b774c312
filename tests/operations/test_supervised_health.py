"""Whether each role of `seckill up` is well, told by the process that has started them: from the files of figures that
other processes, which live, have written."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seckill.operations.role_health import HUNG_AFTER_S, STUCK_AFTER_S, TELL_EVERY_S
from seckill.operations.supervised_health import SupervisedReport, SupervisedVitals
from seckill.telemetry import Exposition

ROLES = ("api", "worker")


@contextlib.contextmanager
def process(folder: Path, *told: str) -> Iterator[None]:
    """One that has told this of itself, and lives."""
    begins, ends = "from seckill.telemetry import *; import time; now_s = time.time()", "print(1, flush=True); input()"
    code = "; ".join([begins, *told, ends])
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as running:
        assert running.stdout
        assert running.stdout.readline() == b"1\n"
        yield


def well(role: str) -> list[str]:
    stores = [f"STORE_UP.labels({role!r}, {store!r}).set(1)" for store in ("gate", "ledger")]
    return [
        f"PROCESSES.labels({role!r}).set(1)",
        f"ALIVE_AT.labels({role!r}).set(now_s)",
        f"STEP_SECONDS.labels({role!r}).set(1)",
        f"READY.labels({role!r}).set(1)",
        *stores,
    ]


def asked(folder: Path) -> SupervisedVitals:
    return SupervisedVitals(ROLES, Exposition(folder))


def told(report: SupervisedReport) -> tuple[bool, dict[str, Any]]:
    return report.good, json.loads(report.body())


def test_every_role_is_told_and_one_that_is_gone_is_missing(tmp_path: Path) -> None:
    with process(tmp_path, *well("api")):
        with process(tmp_path, *well("worker")):
            assert told(asked(tmp_path).health()) == (
                True,
                {"status": "ok", "roles": {"api": {"status": "ok"}, "worker": {"status": "ok"}}},
            )
            ready = {"status": "ready", "gate": "up", "ledger": "up"}
            assert told(asked(tmp_path).readiness()) == (
                True,
                {"status": "ready", "roles": {"api": ready, "worker": ready}},
            )
        for report in (asked(tmp_path).health(), asked(tmp_path).readiness()):
            good, body = told(report)
            assert (good, body["status"], body["roles"]["worker"]) == (False, "missing", {"status": "missing"})


@pytest.mark.parametrize(
    ("says", "status"),
    [
        (f"ALIVE_AT.labels('worker').set(now_s - {HUNG_AFTER_S + TELL_EVERY_S + 1})", "hung"),
        (f"STEP_SECONDS.labels('worker').set({STUCK_AFTER_S + 1})", "stuck"),
    ],
)
def test_one_process_that_hangs_among_several_counts(tmp_path: Path, says: str, status: str) -> None:
    with process(tmp_path, *well("api")), process(tmp_path, *well("worker")), process(tmp_path, *well("worker"), says):
        good, body = told(asked(tmp_path).health())
        assert (good, body["status"], body["roles"]["api"]) == (False, status, {"status": "ok"})
        assert body["roles"]["worker"].keys() == {"status", "seconds"}
        assert not asked(tmp_path).readiness().good


def test_a_role_that_cannot_work_is_healthy_and_not_ready(tmp_path: Path) -> None:
    away = ["READY.labels('worker').set(0)", "STORE_UP.labels('worker', 'ledger').set(0)"]
    with process(tmp_path, *well("api")), process(tmp_path, *well("worker"), *away):
        assert asked(tmp_path).health().good
        good, body = told(asked(tmp_path).readiness())
        assert (good, body["status"]) == (False, "not_ready")
        assert body["roles"]["worker"] == {"status": "not_ready", "gate": "up", "ledger": "away"}
        assert body["roles"]["api"]["status"] == "ready"


def test_one_that_has_just_been_started_is_healthy_and_not_ready(tmp_path: Path) -> None:
    with process(tmp_path, *well("api")), process(tmp_path, "PROCESSES.labels('worker').set(1)"):
        assert asked(tmp_path).health().good
        assert told(asked(tmp_path).readiness())[1]["roles"]["worker"] == {"status": "starting"}
