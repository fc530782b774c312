"""The rules for alerts, tried out by Prometheus's own tool: each is silent while all is well and rings when it should.
Rules, runbook, dashboards and metrics name each other, and nothing that is not there."""

import ast
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from seckill.domain.space import SHORT_BYTES_MAX, SHORT_SHARE
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.alarms.alarm_cause import runbook as runbook_of
from seckill.telemetry import SalesReading, ShownSales
from tests.fixtures import missing
from tests.operations.test_telemetry import READING

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy" / "prometheus"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    for rule in group["rules"]
}
CONFIGURATION: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
PAGES = [ROOT / "docs" / "operations.md", ROOT / "docs" / "operations.zh-CN.md"]
# How long a state of affairs lasts in a case: samples every 30 s, and it is looked at after twenty minutes.
EVERY = "30s"
AT = "20m"
STEADY = "x50"


@dataclass(frozen=True)
class Case:
    """Series as promtool notes them. `quiet`: all is well; `loud`: what of these is different when it rings."""

    quiet: dict[str, str]
    loud: dict[str, str]
    labels: dict[str, str] = field(default_factory=dict)


def processes(role: str) -> str:
    return f'seckill_processes{{role="{role}"}}'


def fewer(role: str) -> Case:
    one, other = (f'seckill_processes{{role="{role}",instance="{name}"}}' for name in "ab")
    return Case({one: f"1{STEADY}", other: f"1{STEADY}"}, {other: "1x20 stale"})


def none(role: str) -> Case:
    return Case({processes(role): f"1{STEADY}"}, {processes(role): "1x20 stale"})


def grows(series: str, by: int = 1) -> Case:
    """A counter that stands, and one that counted up a while ago."""
    return Case({series: f"7{STEADY}"}, {series: f"7x36 {7 + by}{STEADY}"})


def stands(series: str, bad: int, labels: dict[str, str] | None = None, well: int = 0) -> Case:
    return Case({series: f"{well}{STEADY}"}, {series: f"{bad}{STEADY}"}, labels or {})


def refused(outcome: str) -> Case:
    """A hundred claims in a sample, of which many are answered so."""
    series = f'seckill_claims_total{{outcome="{outcome}"}}'
    return Case(
        {'seckill_claims_total{outcome="admitted"}': f"0+100{STEADY}", series: f"3{STEADY}"}, {series: f"0+50{STEADY}"}
    )


def free(space: str) -> str:
    return f'seckill_space_free_bytes{{store="gate",space="{space}"}}'


def size(space: str) -> str:
    return f'seckill_space_size_bytes{{store="gate",space="{space}"}}'


CASES = {
    "SeckillApiMissing": fewer("api"),
    "SeckillWorkerMissing": fewer("worker"),
    "SeckillKeeperMissing": fewer("keeper"),
    "SeckillNoApi": none("api"),
    "SeckillNoWorker": none("worker"),
    "SeckillNoKeeper": none("keeper"),
    "SeckillRestarts": Case(
        {'seckill_process_start_time_seconds{role="api"}': "1x20 2x40"},
        {'seckill_process_start_time_seconds{role="api"}': f"1x15 2x5 3x5 4{STEADY}"},
        {"role": "api"},
    ),
    # promtool's clock begins at 0, so a process that tells its time counts with it.
    "SeckillHangs": Case(
        {
            'seckill_alive_timestamp_seconds{role="worker"}': f"0+30{STEADY}",
            'seckill_step_seconds{role="worker"}': f"1{STEADY}",
        },
        {'seckill_alive_timestamp_seconds{role="worker"}': f"0+30x20 600{STEADY}"},
        {"role": "worker"},
    ),
    "SeckillScrapeFails": stands(
        'up{job="seckill-api",instance="a"}', 0, {"job": "seckill-api", "instance": "a"}, well=1
    ),
    "SeckillGateAway": stands('seckill_store_up{role="api",store="gate"}', 0, {"role": "api"}, well=1),
    "SeckillLedgerAway": stands('seckill_store_up{role="worker",store="ledger"}', 0, {"role": "worker"}, well=1),
    "SeckillGateDamaged": grows("seckill_gate_damage_total"),
    "SeckillRoundsMissing": stands("seckill_rounds_missing", 2),
    "SeckillServersUnfit": stands("seckill_servers_unfit", 1),
    "SeckillClaimsNotReady": refused("not_ready"),
    "SeckillClockOff": stands('seckill_clock_offset_seconds{store="ledger",instance="a"}', -3, {"store": "ledger"}),
    "SeckillNearlyFull": Case(
        {free("disk"): f"20e9{STEADY}", size("disk"): f"100e9{STEADY}"},
        {free("disk"): f"4e9{STEADY}"},
        {"store": "gate", "space": "disk"},
    ),
    "SeckillOverloaded": refused("overloaded"),
    "SeckillUnknownAnswers": refused("unknown"),
    "SeckillOrdersWait": Case(
        {"seckill_backlog": f"20{STEADY}", 'seckill_orders_recorded_total{kind="new"}': f"0+9{STEADY}"},
        {'seckill_orders_recorded_total{kind="new"}': f"9{STEADY}"},
    ),
    "SeckillBacklogGrows": Case({"seckill_backlog": f"20000-100{STEADY}"}, {"seckill_backlog": f"9000+500{STEADY}"}),
    "SeckillDeadLetters": grows("seckill_dead_letters_total"),
    "SeckillEntriesRefused": grows("seckill_entries_refused_total"),
    "SeckillAuditFinds": stands('seckill_audit_findings{invariant="units"}', 1, {"invariant": "units"}),
    "SeckillAuditBlind": Case(
        {processes("keeper"): f"1{STEADY}", 'seckill_audits_total{verdict="holds"}': f"0+15{STEADY}"},
        {'seckill_audits_total{verdict="holds"}': f"15{STEADY}"},
    ),
    "SeckillLatePayments": grows('seckill_captures_total{fate="late"}', 20),
    "SeckillPaymentSideFails": grows('seckill_checkouts_total{result="failed"}', 20),
    "SeckillRefundRefused": grows('seckill_refunds_total{result="refused"}'),
    "SeckillMoneyUnknown": Case(
        {
            'seckill_captures_total{fate="wrong_amount"}': f"7{STEADY}",
            'seckill_captures_total{fate="still_queued"}': f"7x30 8{STEADY}",
            "seckill_backlog": f"3{STEADY}",
        },
        {'seckill_captures_total{fate="wrong_amount"}': f"7x36 8{STEADY}"},
    ),
    "SeckillPaidUnnoticed": grows('seckill_checkouts_total{result="paid_unnoticed"}'),
    "SeckillRefundsByHand": grows('seckill_refunds_total{result="by_hand"}'),
    "SeckillWebhookFails": stands("seckill_webhooks_failing", 1),
    "SeckillNobodyPresses": Case(
        {
            'seckill_claims_total{outcome="admitted"}': f"7x30 7+5{STEADY}",
            "seckill_sales_on": f"0x30 1{STEADY}",
            'seckill_sale_available{sale="s"}': f"9{STEADY}",
        },
        {'seckill_claims_total{outcome="admitted"}': f"7{STEADY}"},
    ),
    "SeckillSlowAnswers": Case(
        {
            'seckill_answer_seconds_bucket{answer="accepted",le="0.05"}': f"0+100{STEADY}",
            'seckill_answer_seconds_bucket{answer="accepted",le="2"}': f"0+100{STEADY}",
            'seckill_answer_seconds_bucket{answer="accepted",le="+Inf"}': f"0+100{STEADY}",
        },
        {'seckill_answer_seconds_bucket{answer="accepted",le="0.05"}': f"0+90{STEADY}"},
    ),
    "SeckillConnectionsFull": Case(
        {'seckill_connections{instance="a"}': f"80{STEADY}", 'seckill_connections_max{instance="a"}': f"100{STEADY}"},
        {'seckill_connections{instance="a"}': f"95{STEADY}"},
        {"instance": "a"},
    ),
    "SeckillOrdersLapse": Case(
        {'seckill_lapsed_share{sale="s"}': f"0.9{STEADY}", 'seckill_sale_orders{sale="s"}': f"19{STEADY}"},
        {'seckill_sale_orders{sale="s"}': f"30{STEADY}"},
        {"sale": "s"},
    ),
    "SeckillAttack": Case(
        {'seckill_incidents_total{kind="admin_guess"}': f"0+100{STEADY}"},
        {'seckill_incidents_total{kind="admin_guess"}': f"0+3000{STEADY}"},
        {"kind": "admin_guess"},
    ),
    "SeckillAlarmsLost": grows('seckill_alarms_total{result="given_up"}'),
}


def promtool() -> str:
    """The system's, or what `scripts/get-servers` has fetched."""
    fetched = Path(sys.prefix) / "servers" / "prometheus" / "bin" / "promtool"
    found = shutil.which("promtool") or (str(fetched) if fetched.exists() else None)
    if found is None:
        missing("promtool is not installed: scripts/get-servers fetches it")
    return found


def run(*arguments: str) -> str:
    done = subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def worlds(*, loud: bool) -> list[dict[str, Any]]:
    """Returns the trials as promtool wants them. Cases that are not about the same metrics are tried at once: each
    world takes a quarter of a second."""
    found: list[dict[str, Case]] = []
    for alert, case in CASES.items():
        fitting = (world for world in found if not metrics(case) & set().union(*map(metrics, world.values())))
        world = next(fitting, None)
        if world is None:
            found.append({alert: case})
        else:
            world[alert] = case
    return [trial(world, loud=loud) for world in found]


def metrics(case: Case) -> set[str]:
    return {series.partition("{")[0] for series in case.quiet}


def trial(world: dict[str, Case], *, loud: bool) -> dict[str, Any]:
    series = {name: values for case in world.values() for name, values in case.quiet.items()}
    if loud:
        series |= {name: values for case in world.values() for name, values in case.loud.items()}
    expected = {
        alert: {"exp_labels": case.labels | RULES[alert]["labels"], "exp_annotations": annotations(RULES[alert])}
        for alert, case in world.items()
    }
    return {
        "external_labels": CONFIGURATION["global"]["external_labels"],
        "interval": EVERY,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": AT, "alertname": alert, "exp_alerts": [rings] if loud else []}
            for alert, rings in expected.items()
        ],
    }


def annotations(rule: dict[str, Any]) -> dict[str, str]:
    """Returns the annotations as they are sent."""
    url = CONFIGURATION["global"]["external_labels"]["shop_url"]
    return {name: text.replace("{{ $externalLabels.shop_url }}", url) for name, text in rule["annotations"].items()}


def failures(folder: Path, trials: list[dict[str, Any]]) -> str:
    shutil.copy(FOLDER / "rules.yml", folder)
    (folder / "trials.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": trials}))
    return run("test", "rules", str(folder / "trials.yml"))


def test_every_alert_rings_when_it_should_and_only_then(tmp_path: Path) -> None:
    assert failures(tmp_path, worlds(loud=False) + worlds(loud=True)) == ""


NOBODY = CASES["SeckillNobodyPresses"].quiet | CASES["SeckillNobodyPresses"].loud


@pytest.mark.parametrize(
    ("series", "rings"),
    [
        ({}, True),
        ({"seckill_sales_on": f"1{STEADY}"}, False),  # a sale of many days in a quiet hour
        ({"seckill_sales_on": f"_x30 1{STEADY}"}, True),  # the roles were started with the sale
        ({'seckill_sale_available{sale="s"}': f"0{STEADY}"}, False),
        ({'seckill_line_entries_total{outcome="joined"}': f"0+1{STEADY}"}, False),
        # A crowd, and then no requests.
        (
            {"seckill_sales_on": f"1{STEADY}", 'seckill_claims_total{outcome="sold_out"}': f"0+100x30 3000{STEADY}"},
            True,
        ),
        ({"seckill_sales_on": f"1{STEADY}", 'seckill_claims_total{outcome="sold_out"}': f"0+3x30 90{STEADY}"}, False),
    ],
)
def test_nobody_presses_rings_only_where_a_crowd_is_to_be_expected(
    tmp_path: Path, series: dict[str, str], rings: bool
) -> None:
    made = trial({"SeckillNobodyPresses": Case(NOBODY | series, {})}, loud=True)
    if not rings:
        made["alert_rule_test"][0]["exp_alerts"] = []
    assert failures(tmp_path, [made]) == ""


@pytest.mark.parametrize(
    ("series", "rings"),
    [
        ({'seckill_captures_total{fate="unknown_order"}': f"7x30 8{STEADY}"}, True),
        ({"seckill_backlog": f"0{STEADY}"}, True),  # nothing is queued that it could be for
        ({"seckill_backlog": f"3x20 0{STEADY}"}, False),  # it may have been written since
    ],
)
def test_money_for_an_order_that_is_queued_rings_only_where_none_is(
    tmp_path: Path, series: dict[str, str], rings: bool
) -> None:
    made = trial({"SeckillMoneyUnknown": Case(CASES["SeckillMoneyUnknown"].quiet | series, {})}, loud=True)
    if not rings:
        made["alert_rule_test"][0]["exp_alerts"] = []
    assert failures(tmp_path, [made]) == ""


@pytest.mark.parametrize(
    ("series", "rings"),
    [
        ({free("disk"): f"6e9{STEADY}"}, False),  # less than a tenth, and still room for millions of orders
        ({free("disk"): f"0.4e9{STEADY}", size("disk"): f"2e9{STEADY}"}, False),  # small, and a fifth of it is free
        ({free("memory"): f"0.3e9{STEADY}", size("memory"): f"4e9{STEADY}"}, True),
        ({free("disk"): f"40e9-1e9{STEADY}"}, True),  # 40 GB in twenty minutes
        ({free("disk"): f"40e9-0.1e9{STEADY}"}, False),  # 2 GB
    ],
)
def test_what_is_nearly_full_is_told_before_it_is_full(tmp_path: Path, series: dict[str, str], rings: bool) -> None:
    labels = {"store": "gate", "space": "memory" if free("memory") in series else "disk"}
    made = trial({"SeckillNearlyFull": Case(CASES["SeckillNearlyFull"].quiet | series, {}, labels)}, loud=True)
    if not rings:
        made["alert_rule_test"][0]["exp_alerts"] = []
    assert failures(tmp_path, [made]) == ""


def test_the_alert_and_the_alarm_have_the_same_limits() -> None:
    assert f"< {SHORT_SHARE:g} and" in RULES["SeckillNearlyFull"]["expr"]
    assert f"< {SHORT_BYTES_MAX} or" in RULES["SeckillNearlyFull"]["expr"]


def test_a_wrong_trial_fails(tmp_path: Path) -> None:
    """A test that finds nothing would pass everything."""
    wrong = trial({"SeckillNoWorker": CASES["SeckillNoWorker"]}, loud=True)
    wrong["alert_rule_test"][0]["exp_alerts"] = []
    assert "SeckillNoWorker" in failures(tmp_path, [wrong])


def test_every_alert_is_tried() -> None:
    assert set(CASES) == set(RULES)


def test_prometheus_understands_its_configuration() -> None:
    assert run("check", "config", str(FOLDER / "prometheus.yml")) == ""
    assert run("check", "rules", str(FOLDER / "rules.yml")) == ""


def runbook(page: Path) -> dict[str, set[str]]:
    """The entries of the runbook: their anchors, and the alerts that stand below their headings."""
    part = re.search(r"^## (?:Runbook|运行手册)\n(.*?)^## ", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert part
    found = {}
    for entry in re.split(r"^#### ", part[1], flags=re.MULTILINE)[1:]:
        heading, first = entry.split("\n\n")[:2]
        anchor = re.match(r'<a id="if-([a-z-]+)"></a>\S', heading)
        assert anchor, heading
        found[anchor[1]] = set(re.findall(r"`(Seckill\w+)`", first))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_row_of_the_runbook_has_its_alerts_and_every_alert_its_row(page: Path) -> None:
    rows = runbook(page)
    of_rules: dict[str, set[str]] = {row: set() for row in rows}
    for alert, rule in RULES.items():
        place, _, row = rule["annotations"]["runbook_url"].partition("#if-")
        assert (place, row in rows) == ("{{ $externalLabels.shop_url }}/help/operations.html", True), alert
        of_rules[row].add(alert)
    for row, alerts in of_rules.items():
        assert alerts <= rows[row], row
    assert set().union(*rows.values()) == set(RULES)
    without = {row for row, alerts in rows.items() if not alerts} - of_alarms()
    assert without == {"round-over", "time-zone", "issuer-away"}, "nothing has to be done there, or nothing rings"


def of_alarms() -> set[str]:
    """Rows that alarms lead to."""
    return {str(runbook_of(each)).partition("#if-")[2] for each in AlarmCause if each is not AlarmCause.TEST}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_alarm_has_its_line_in_the_table_and_its_row(page: Path) -> None:
    listed = re.findall(
        r"^\| `([^`]+)` \| (?:\[if-[a-z-]+\]\(#if-([a-z-]+)\)|–) \|", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    expected = [(each.value, str(runbook_of(each)).partition("#if-")[2]) for each in AlarmCause]
    assert sorted(listed) == sorted(expected)
    assert of_alarms() <= set(runbook(page))


def test_whoever_raises_an_alarm_names_one_of_these() -> None:
    """Otherwise it would have no entry in the runbook."""
    raised = set()
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "seckill").rglob("*.py"))}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if ".raise_(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "raise_":
                said = ast.unparse(node.args[0])
                named_there = {("outage_alarm.py", "trouble"), ("space_alarm.py", "cause")}
                known = said.startswith("AlarmCause.") or (path.name, said) in named_there
                assert known, f"{path}: {said}"
                raised.add(said)
    assert len(raised) > 10


def exposed() -> set[str]:
    """Every name that a scrape can have."""
    found = {"up"}
    shown = ShownSales()
    shown.show(SalesReading(on=1, shown=[READING]))
    for metric in (*REGISTRY.collect(), *shown.collect()):
        if metric.name.startswith("seckill_"):
            suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(metric.type, ("",))
            found |= {metric.name + suffix for suffix in suffixes}
    return found


def named(query: str) -> set[str]:
    """The metrics in a query: names that are no function, no label and no grouping."""
    bare = re.sub(r'"[^"]*"', '""', query)
    bare = re.sub(r"\boffset \w+|\{[^}]*\}|\b(?:by|on|without|group_left|group_right) *\([^)]*\)|\[[^]]*\]", " ", bare)
    return {word for word in re.findall(r"[a-z_][a-z_0-9]*(?! *\()\b", bare) if word not in ("and", "or", "by", "on")}


def test_the_measure_finds_the_metrics_of_a_query() -> None:
    query = 'max by (role) (time() - seckill_x_total{role="a_b"} offset 5m) > 2 or on () (sum(rate(up[2m])) == 0)'
    assert named(query) == {"seckill_x_total", "up"}


@pytest.mark.parametrize("alert", sorted(RULES))
def test_an_alert_names_metrics_that_exist(alert: str) -> None:
    names = named(RULES[alert]["expr"])
    assert names
    assert names <= exposed()
    assert RULES[alert]["labels"]["severity"] in ("warning", "critical")


def panels(dashboard: Path) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(dashboard.read_text())["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.name)
def test_a_dashboard_asks_for_metrics_that_exist(dashboard: Path) -> None:
    found = json.loads(dashboard.read_text())
    variables = found["templating"]["list"]
    queries = [target["expr"] for panel in panels(dashboard) for target in panel["targets"]]
    queries += [
        re.sub(r"label_values\((.*), *\w+\)", r"\1", each["query"]) for each in variables if each["type"] == "query"
    ]
    assert len(queries) >= 8
    for query in queries:
        names = named(query)
        assert names, query
        assert names <= exposed(), query


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.name)
def test_panels_of_a_dashboard_do_not_lie_upon_each_other(dashboard: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(dashboard.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_every_query_of_the_dashboards_is_one(tmp_path: Path) -> None:
    """Prometheus can read them, with the variables filled in."""
    queries = [target["expr"] for dashboard in DASHBOARDS for panel in panels(dashboard) for target in panel["targets"]]
    rules = [
        {"record": f"q:{i}", "expr": query.replace("$sale", ".*").replace("$__rate_interval", "1m")}
        for i, query in enumerate(queries)
    ]
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert run("check", "rules", "--lint=none", str(tmp_path / "queries.yml")) == ""


def test_the_page_names_no_metric_that_is_not_there() -> None:
    known = {name.removesuffix("_bucket") for name in exposed()} | exposed()
    for page in PAGES:
        found = set(re.findall(r"`(seckill_[a-z_]+)", page.read_text(encoding="utf-8")))
        assert found - known == set()
