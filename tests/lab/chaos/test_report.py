"""One document, from which table, JSON and page are made."""

import json
import re

import pytest

from seckill.cli.commands.chaos import _print
from seckill.lab.chaos.document import document, verdict
from seckill.lab.chaos.evidence import Evidence
from seckill.lab.chaos.judgement import judge
from seckill.lab.chaos.report import report
from seckill.lab.chaos.schedule import plan
from tests.lab.chaos.evidence import good
from tests.lab.chaos.test_judgement import fail, lose
from tests.lab.chaos.test_schedule import OPTIONS


def made(evidence: Evidence) -> dict[str, object]:
    evidence.backlog = [(0.0, 3), (1.0, 12), (2.0, 0)]
    evidence.notes.append("clock steps are left out: <nothing> there")
    found = document(
        evidence,
        judge(evidence),
        plan(1, 60, OPTIONS),
        servers={"gate": "Valkey", "ledger": "SQLite"},
        starts={"api": 2},
    )
    return found | {"command": "seckill chaos --seed 1", "seed": 1, "minutes": 1.0}


def test_the_page_begins_with_the_verdict_and_needs_nothing_else() -> None:
    page = report(made(good()))
    assert page.index("Everything held. 3 orders accepted") < page.index("<svg")
    assert "seckill chaos --seed 1" in page
    assert "takeover worker-1" in page, "faults are named in the chart"
    assert "3 entries taken over" in page
    assert "8.0 s: kill every process, once more" in page, "so is the end of them"
    assert "<td>1.5 s</td><td>kill</td>" in page
    assert "<nothing>" not in page, "text is text"
    assert not re.search(r'(?:src|href)="|https?://(?!www\.w3\.org)', page)


def test_only_what_broke_has_the_colour_of_it() -> None:
    evidence = good()
    assert '<h1 class="verdict good">' in report(made(evidence))
    evidence.required.append("worker.gate.settle.after: kill")
    assert '<h1 class="verdict">' in report(made(evidence)), "a window was missed: could not tell"
    lose(evidence)
    assert '<h1 class="verdict bad">' in report(made(evidence))


def test_what_broke_is_named_in_page_and_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = good()
    lose(evidence)
    found = made(evidence)
    assert verdict(found).startswith("Something broke.")
    assert "1 lost" in verdict(found)
    assert "o7 of u7" in report(found)
    _print(found)
    said = capsys.readouterr().out
    assert "BROKEN" in said
    assert "o7 of u7" in said
    assert "note: clock steps are left out" in said


def test_the_document_is_json_and_tells_everything() -> None:
    evidence = good()
    fail(evidence)
    found = json.loads(json.dumps(made(evidence)))
    assert found["verdict"] == "broken"
    assert (found["oversold"], found["duplicates"], found["lost"], found["leaked"]) == (0, 0, 0, 0)
    assert found["schedule"][0] == {"at_s": 3.0, "kind": "takeover", "target": "worker-1", "lasts_s": 0.0}
    assert found["series"]["accepted"] == [0, 3]
    assert found["feed"] == {"events": 7, "resumed": 2}
    assert found["webhook"] == {"arrivals": 7, "refused": 0, "repeated": 0}
    assert [check["name"] for check in found["checks"] if check["verdict"] == "broken"] == ["failed"]
