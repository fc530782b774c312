"""The report begins with the verdict and leaves nothing out; what cannot be known is marked as such."""

from typing import Any

import msgspec
import pytest

from seckill.cli.commands.rehearse import _print
from seckill.client.documents import Sale
from seckill.lab.rehearsal.crowd import HABITS
from seckill.lab.rehearsal.deployment import Deployment, sales_near
from seckill.lab.rehearsal.document import Findings, document
from seckill.lab.rehearsal.judgement import Judged
from seckill.lab.rehearsal.marked_sale import MarkedSale
from seckill.lab.rehearsal.part_costs import Idle
from seckill.lab.rehearsal.report import report
from seckill.lab.rehearsal.watch import WatchReading
from tests.lab.rehearsal.making import good, slow, steady, wave

RUN = {"command": "seckill rehearse --url <here>", "machine": {"cores": 4, "system": "Linux", "python": "3.11"}}


def sale(**facts: Any) -> Sale:
    told = {
        "id": "S1",
        "title": "Phone",
        "units": 1,
        "limit_per_buyer": 1,
        "price_cents": 1,
        "currency": "CNY",
        "begins_at": "2030-01-01T10:00:00Z",
        "ends_at": "2030-01-01T11:00:00Z",
        "pay_within_s": 60,
        "cool_down_s": 0,
        "lanes": 1,
        "confirm": "gate",
        "state": "scheduled",
        "round": "1",
        "repeat": None,
        "timezone": "UTC",
        "next_rounds": [],
        "server_time": "2030-01-01T08:00:00Z",
        "images": [],
        "list_price_cents": None,
        "pass": "none",
        "order": "press",
        "waiting_list": False,
        "lined": False,
        "vouchers": False,
        "published": True,
        "external_id": None,
    }
    return msgspec.convert(told | facts, Sale)


def found(phases: list[Judged], *, need: float | None = None, audit: str = "holds") -> dict[str, Any]:
    findings = Findings(
        wanted_buyers=1000,
        seconds=60,
        need=need,
        senders=2,
        lanes=1,
        habits=HABITS,
        deployment=Deployment(url="http://x", version="1", no_money_moves=False, signs_anybody_in=False),
        idle=Idle(),
        phases=phases,
        spans=[(0.0, 1.0, "100 presses a second")],
        readings=[WatchReading(at_s=0, accepted=0), WatchReading(at_s=1, accepted=80, backlog=3)],
        drain_s=0.2,
        audit=audit,
        custody={},
    )
    marked = MarkedSale(sale(external_id="rehearsal-1"), "rehearsal-1", closed=True, hidden=True)
    return document(findings, marked) | {"run": RUN}


def test_the_report_tells_the_rate_the_part_and_what_to_do() -> None:
    told = found([good(steady(100)), good(wave(80)), slow(steady(400), api=0.95)], need=500)
    assert told["verdict"]["says"] == (
        "80 presses a second are safe here; first full, at 400 a second: the API processes. Asked for: 500 a second, "
        "not reached."
    )
    assert told["verdict"]["exit_code"] == 1
    assert [round(each["rate"]) for each in told["needs"]] == [80, 800, 8000]
    assert told["series"]["accepted_per_s"] == [[1, 80.0]]
    page = report(told)
    assert page.index(told["verdict"]["says"]) < page.index("<svg")
    assert "Add API processes" in page
    assert "seckill rehearse --url &lt;here&gt;" in page
    assert 'class="verdict bad"' in page


def test_the_terminal_shows_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    told = found([good(steady(100)), good(wave(80)), slow(steady(400), api=0.95)])
    _print(told)
    shown = capsys.readouterr().out
    assert told["verdict"]["says"] in shown
    assert told["phases"][-1]["why"] in shown
    assert "The sale S1 is closed and hidden; audit: holds." in shown
    _print(found([good(steady(100))], audit="unknown"))
    assert "audit: unknown, so run `seckill audit` there." in capsys.readouterr().out


def test_a_limit_of_the_sender_is_no_limit_of_the_deployment() -> None:
    told = found([good(steady(100)), good(wave(80))])
    assert told["verdict"]["at_least"]
    assert "more could not be tried" in told["verdict"]["says"]
    assert told["advice"][0].startswith("Nothing was full")
    report(told)


def test_a_rehearsal_in_which_nothing_went_well_has_a_report_too() -> None:
    told = found([slow(steady(100), api=0.95)])
    assert told["verdict"]["says"].startswith("No rate was found")
    assert told["needs"] == []
    assert "nothing can be said" in report(told)
    report(found([]))
    assert "broken" in found([good(steady(100))], audit="broken")["verdict"]["says"]


def test_real_sales_that_are_on_or_near_are_noticed() -> None:
    assert sales_near([sale()], 60) is None, "in two hours"
    assert "begins at 10:00:00" in str(sales_near([sale(server_time="2030-01-01T09:50:00Z")], 60))
    assert "begins at 10:00:00" in str(sales_near([sale(server_time="2030-01-01T09:00:00Z")], 1900)), "a long rehearsal"
    for state in ("open", "paused", "sold_out"):
        assert f"is {state}" in str(sales_near([sale(state=state)], 60))
    assert sales_near([sale(state="ended")], 60) is None
    assert sales_near([sale(state="open", published=False)], 60) is None
    assert sales_near([sale(state="open", external_id="rehearsal-77")], 60) is None
