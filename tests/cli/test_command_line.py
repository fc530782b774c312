"""The command line: what it understands, and how it says what is wrong."""

import http.server
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from msgspec.structs import fields

from seckill.audit.report import Units
from seckill.cli import app, main
from seckill.cli.commands.audit import _sold
from seckill.cli.output import instant
from seckill.cli.up_announcement import Greeting, _token_command, greet
from seckill.settings import Secret, Settings
from seckill.web.schemas import SalePatch
from tests.api.sign_in_stand_in import running_provider

KEY = "kR7tq2Zx9vLm4Wp8"


class Recorder(http.server.BaseHTTPRequestHandler):
    """Answers as it is told and keeps what it was asked."""

    answer: tuple[int, dict[str, Any]]
    others: dict[str, dict[str, Any]] = {}  # noqa: RUF012 (what is answered where the path ends like that)
    asked: list[tuple[str, str, str | None, Any]]

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.asked.append((self.command, self.path, self.headers["Authorization"], json.loads(body or b"null")))
        status, content = self.answer
        content = self.others.get(self.path.partition("?")[0].rpartition("/")[2], content)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    do_GET = do_POST = do_PATCH = _respond  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[tuple[str, type[Recorder]]]:
    class Mine(Recorder):
        answer = (200, {"sales": []})
        asked: list[tuple[str, str, str | None, Any]] = []  # noqa: RUF012

    with http.server.HTTPServer(("127.0.0.1", 0), Mine) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", Mine
        server.shutdown()


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def seckill(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["seckill", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize("text", ["99.99", "1.5", "0x10", "1e3", "1_000", "٣", "", "many", "9" * 19])
@pytest.mark.parametrize(
    "command",
    [
        "sale create Phone --units 1 --price-cents",
        "sale create Phone --units",
        "sale create Phone --units 1 --limit",
        "sale create Phone --units 1 --pay-within",
        "sale add-stock SALE",
        "up --port",
        "up --api",
        "api --port",
    ],
)
def test_a_number_that_is_not_whole_is_refused_and_not_rounded(
    command: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seckill(monkeypatch, *command.split(), text) == 2
    said = capsys.readouterr().err
    assert said.startswith("seckill: ")
    assert said.endswith(f'"{text}" is not a whole number.\n')
    assert said.count("\n") == 1


def test_what_was_typed_is_what_is_sent(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, asked = api[0], api[1].asked
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    command = ["sale", "create", "Phone", "--units", "+7", "--price-cents", "9900", "--json", "--url", url]
    assert seckill(monkeypatch, *command) in (None, 0)
    ((method, path, authorization, body),) = asked
    assert (method, path, authorization) == ("POST", "/v1/sales", f"Bearer {KEY}")
    assert (body["units"], body["limit_per_buyer"], body["price_cents"]) == (7, 1, 9900)
    assert not {"pass", "pass_work", "audience"} & set(body), "what is not given is the API's to choose"


def test_who_may_buy_is_sent_as_the_api_wants_it(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, asked = api[0], api[1].asked
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    command = [
        "sale",
        "create",
        "Phone",
        "--units",
        "7",
        "--json",
        "--url",
        url,
        "--pass",
        "work",
        "--pass-work",
        "5000",
    ]
    command += ["--group", "gold", "--group", "staff", "--early", "vip:10", "--listed"]
    assert seckill(monkeypatch, *command) in (None, 0)
    ((_, _, _, body),) = asked
    assert (body["pass"], body["pass_work"]) == ("work", 5000)
    early = [{"groups": ["vip"], "minutes": 10}]
    assert body["audience"] == {"groups": ["gold", "staff"], "early": early, "list": True}
    assert seckill(monkeypatch, "sale", "create", "Phone", "--units", "7", "--url", url, "--early", "vip") == 1
    assert "such as vip:10" in capsys.readouterr().err


def test_items_are_sent_as_they_were_typed(api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch) -> None:
    url, asked = api[0], api[1].asked
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    items = ["--item", "M:50:9900", "--item", "L, blue:20", "--item", "size: XL:5:0:sku-xl"]
    assert seckill(monkeypatch, "sale", "create", "Shirt", *items, "--json", "--url", url) in (None, 0)
    assert seckill(monkeypatch, "sale", "add-stock", "SALE", "7", "--item", "ITEM", "--json", "--url", url) in (None, 0)
    (*_, created), (_, _, _, added) = asked
    assert created["items"] == [
        {"title": "M", "units": 50, "price_cents": 9900},
        {"title": "L, blue", "units": 20},
        {"title": "size: XL", "units": 5, "price_cents": 0, "external_id": "sku-xl"},
    ]
    assert "units" not in created
    assert added == {"items": [{"item_id": "ITEM", "add_units": 7}]}


SALE = {
    "id": "SALE",
    "pass": "none",
    "title": "[red]Phone[/]",
    "state": "open",
    "price_cents": 9900,
    "currency": "CNY",
    "round": "7",
    "repeat": "daily",
    "timezone": "Asia/Shanghai",
    "next_rounds": ["2026-11-20T02:00:00.000Z", "2026-11-21T02:00:00.000Z"],
    "server_time": "2026-11-19T02:00:00.000Z",
}
CUSTODY = {
    "round": "7",
    "total": 1000,
    "available": 900,
    "queued": 7,
    "unpaid": 50,
    "paid": 39,
    "kept": 1,
    "returning": 3,
    "dead": 0,
    "sold": 90,
    "next_return_at": "2026-11-19T02:10:00.000Z",
}


MONEY = {"currency": "CNY", "taken_cents": 250_00, "refunded_cents": 4_00, "refunding_cents": 4_00, "net_cents": 246_00}
SUMMARY = {
    "round": "7",
    "units": 1000,
    "sold_units": 90,
    "sell_through": 0.09,
    "sold_out_at": "2026-11-19T02:00:02.500Z",
    "seconds_to_sell_out": 2.5,
    "lapsed": 3,
    "lapse_rate": 0.3333,
    "money": [MONEY],
    "money_of_all_rounds": [MONEY | {"net_cents": 900_00}],
    "conversion": {
        "viewers": None,
        "presses": 30,
        "refused": {"sold_out": 20, "paused": 1},
        "orders": 9,
        "paid_orders": 6,
        "orders_per_press": 0.3,
        "paid_per_order": None,
    },
}
POINT = {
    "at": "2026-11-19T02:00:00.000Z",
    "round": "7",
    "available": 0,
    "accepted_units": 12,
    "persisted_units": 11,
    "refused": {"sold_out": 5, "paused": 2},
    "backlog": 1,
    "lag_ms": 3,
    "system_p99_ms": 4.5,
    "unpaid_units": 2,
    "paid_units": None,
    "taken_cents": None,
    "waiting": None,
}


def test_a_sale_that_repeats_and_where_its_units_are(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, asked = api[0], api[1].asked
    earlier = {"round": "5", "state": "ended", "units": 20, "limit_per_buyer": 3}
    earlier |= {"begins_at": "2026-11-17T02:00:00.000Z", "ends_at": "2026-11-17T03:00:00.000Z"}
    api[1].answer = (200, SALE)
    rounds = {"rounds": [earlier] + [earlier | {"round": "4"}] * 7}
    api[1].others = {"custody": CUSTODY, "rounds": rounds, "summary": SUMMARY}
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    assert seckill(monkeypatch, "sale", "show", "SALE", "--round", "5", "--url", url) in (None, 0)
    assert [(path, key) for _, path, key, _ in asked] == [
        ("/v1/sales/SALE", f"Bearer {KEY}"),
        ("/v1/sales/SALE/rounds?round=5", f"Bearer {KEY}"),
        ("/v1/sales/SALE/custody?round=5", f"Bearer {KEY}"),
        ("/v1/admin/sales/SALE/summary?round=5", f"Bearer {KEY}"),
    ]
    printed = capsys.readouterr().out
    assert re.search(r"state +ended", printed), "of that round, not of the current one"
    assert re.search(r"units +20", printed)
    assert "The last rounds" not in printed
    assert re.search(r"next_rounds +2026-11-20 02:00:00Z *\n +2026-11-21 02:00:00Z", printed)
    told = printed[printed.index("Where every unit") :].splitlines()
    assert told[2:11] == [
        "  available  900",
        "  queued       7",
        "  unpaid      50",
        "  paid        39",
        "  kept         1",
        "  returning    3",
        "  dead         0",
        "            ────",
        "  total     1000",
    ]
    assert "The next unpaid order is over at 2026-11-19 02:10:00Z." in told
    lines = told[told.index("What came of it:") :]

    def came(name: str) -> str:
        return next(line.removeprefix(name).strip() for line in lines if line.startswith(f"{name} "))

    assert came("sold") == "90 of 1000, 9.0 %"
    assert came("sold out") == "2026-11-19 02:00:02Z, 2.5 s after it began"
    assert came("presses") == "30, of which 21 refused; who only looks is not counted"
    assert came("paid") == "6, none of the orders"
    assert came("money") == "246.00 CNY = 250.00 CNY taken - 4.00 CNY refunded (4.00 CNY of it not made yet)"
    assert came("money, all rounds").startswith("900.00 CNY")
    assert seckill(monkeypatch, "sale", "show", "SALE", "--url", url) in (None, 0)
    printed = capsys.readouterr().out
    assert re.search(r"state +open", printed)
    assert re.search(r"5 +ended +20 +2026-11-17 02:00:00Z +2026-11-17 03:00:00Z", printed)
    assert len(re.findall(r"4 +ended +20", printed)) == 4, "the last five"
    api[1].answer = (200, SALE | {"published": True, "vouchers": False, "waits_for_codes": False, "limit_group": None})
    assert seckill(monkeypatch, "sale", "show", "SALE", "--url", url) in (None, 0)
    printed = capsys.readouterr().out
    assert re.search(r"published +yes", printed)
    assert re.search(r"vouchers +no", printed)
    assert not re.search("None|True|False|limit_group|waits_for_codes", printed), "words, and nothing that is not there"
    assert seckill(monkeypatch, "sale", "show", "SALE", "--json", "--url", url) in (None, 0)
    document = json.loads(capsys.readouterr().out)
    assert (document["id"], document["custody"]["available"]) == ("SALE", 900)


def test_looking_back_at_a_sale(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, asked = api[0], api[1].asked
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    api[1].answer = (200, {"points": [POINT]})
    span = ["--from", "2026-11-19T10:00:00+08:00", "--to", "2026-11-19T11:00:00+08:00", "--step", "5"]
    assert seckill(monkeypatch, "sale", "history", "SALE", *span, "--url", url) in (None, 0)
    query = "from=2026-11-19T10%3A00%3A00%2B08%3A00&to=2026-11-19T11%3A00%3A00%2B08%3A00&step=5"
    assert asked[0][1] == f"/v1/admin/sales/SALE/history?{query}"
    assert re.search(r"02:00:00Z +7 +12 +11 +7 +0 +1 +4.5 ms", capsys.readouterr().out)
    assert seckill(monkeypatch, "sale", "history", "SALE", "--csv", "--url", url) in (None, 0)
    names, values = capsys.readouterr().out.splitlines()
    row = dict(zip(names.split(","), values.split(","), strict=True))
    assert (row["refused_sold_out"], row["refused_paused"], row["paid_units"]) == ("5", "2", "")
    api[1].answer = (200, {"points": []})
    assert seckill(monkeypatch, "sale", "history", "SALE", "--url", url) in (None, 0)
    assert "Nothing was kept" in capsys.readouterr().out
    what = {"at": POINT["at"], "kind": "sale.paused", "round": None, "who": "li", "why": "[wrong] price"}
    what |= {"before": {"status": "open"}, "after": {"status": "paused"}, "facts": {}}
    api[1].answer = (200, {"entries": [what]})
    assert seckill(monkeypatch, "sale", "timeline", "SALE", "--limit", "9", "--url", url) in (None, 0)
    assert asked[-1][1] == "/v1/admin/sales/SALE/timeline?limit=9"
    assert re.search(r"sale.paused +li +status changed; \[wrong\] price", capsys.readouterr().out)


def test_whatever_the_api_can_change_of_a_sale_commands_can(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = api[0], api[1].asked
    api[1].answer = (200, SALE | {"timezone": "Asia/Shanghai"})
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    goods = {
        "--external-id": "",
        "--metadata": "{}",
        "--description": "new",
        "--image": "https://a.example/b.png",
        "--list-price-cents": "12900",
        "--terms-url": "",
        "--delivery": "",
        "--return-url": "",
    }
    window = {"--begins": "2026-11-20T10:00:00+00:00", "--ends": "2026-11-20T12:00:00"}
    rules = {"--limit": "2", "--cool-down": "0", "--pass": "work", "--pass-work": "5000", "--group": "gold"}
    words = [word for pair in ({"--title": "T"} | goods | window | rules).items() for word in pair]
    for command in (
        ["change", "SALE", *words, "--reason", "later"],
        ["change", "SALE", "--everybody"],
        ["change", "SALE", "--item", "ITEM", "--title", "XL", "--image", "", "--limit", "3"],
        ["add-stock", "SALE", "7"],
        ["publish", "SALE"],
    ):
        assert seckill(monkeypatch, "sale", *command, "--json", "--url", url) in (None, 0), command
    bodies = [body for method, _, _, body in asked if method == "PATCH"]
    assert {name for body in bodies for name in body} == {field.encode_name for field in fields(SalePatch)}
    assert (bodies[0]["begins_at"], bodies[0]["ends_at"]) == ("2026-11-20T10:00:00+00:00", "2026-11-20T12:00:00+08:00")
    assert (bodies[0]["limit_per_buyer"], bodies[0]["cool_down_s"], bodies[0]["terms_url"]) == (2, 0, None)
    assert bodies[1] == {"audience": None}
    assert bodies[2] == {"items": [{"item_id": "ITEM", "title": "XL", "image": None}], "limit_per_buyer": 3}
    assert seckill(monkeypatch, "sale", "change", "SALE", "--everybody", "--listed", "--url", url) == 1


def test_a_repetition_that_was_closed_says_so(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api[1].answer = (200, SALE | {"state": "ended", "next_rounds": []})
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    assert seckill(monkeypatch, "sale", "close", "SALE", "--url", api[0]) in (None, 0)
    assert re.search(r"next_rounds +none: it is closed, and its repetition has ended", capsys.readouterr().out)


def test_a_time_without_an_offset_is_in_the_time_zone(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, asked = api[0], api[1].asked
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    command = ["sale", "create", "Phone", "--units", "7", "--begins", "2026-11-20T10:00:00", "--json", "--url", url]
    there = ["--timezone", "Asia/Shanghai"]
    for more in (["--repeat", "daily", *there], [], there):
        assert seckill(monkeypatch, *command, *more) in (None, 0)
    daily, once, elsewhere = asked[0][3], asked[1][3], asked[2][3]
    assert (daily["repeat"], daily["timezone"]) == ("daily", "Asia/Shanghai")
    assert (daily["begins_at"], daily["ends_at"]) == ("2026-11-20T10:00:00+08:00", "2026-11-20T11:00:00+08:00")
    assert (once["begins_at"], once["ends_at"]) == ("2026-11-20T10:00:00+00:00", "2026-11-21T10:00:00+00:00")
    assert {"repeat", "timezone"}.isdisjoint(once)
    assert (elsewhere["begins_at"], elsewhere["timezone"]) == ("2026-11-20T10:00:00+08:00", "Asia/Shanghai")
    assert "repeat" not in elsewhere


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], 'Unknown command "nonsense".'),
        (["sale", "create", "Phone"], "--units: say how many there are, or give an --item for each size or colour."),
        (["sale", "create", "Phone", "--item", "M"], '--item: write "M" as TITLE:UNITS or TITLE:UNITS:PRICE_CENTS'),
        (["up", "--nonsense"], "Unknown option: --nonsense."),
        (["up", "--port", "99999"], "--port must be a whole number from 0 to 65535, not '99999'."),
        (["api", "--port", "-1"], "--port must be a whole number from 0 to 65535, not '-1'."),
        (["up", "--api", "0"], "--api must be from 1 to 64."),
        (["migrate"], "Set SECKILL_DATABASE_URL."),
        (["token", "buyer", "alice", "--hours", "0"], "--hours must be above 0 and at most 744."),
        (["token", "buyer", "alice", "--hours", "nan"], "--hours must be above 0 and at most 744."),
        (
            ["sale", "create", "Phone", "--units", "1", "--timezone", ""],
            '--timezone: "" is not a time zone; write it like Asia/Shanghai.',
        ),
        (
            ["sale", "create", "Phone", "--units", "1", "--timezone", "Asia/Shangai"],
            '--timezone: "Asia/Shangai" is not a time zone; write it like Asia/Shanghai.',
        ),
        (
            ["sale", "create", "Phone", "--units", "1", "--begins", "tomorrow"],
            'Invalid value for --begins: "tomorrow" is not a time; write it like 2026-11-20T10:00:00+08:00.',
        ),
        (["sale", "pause", "SALE"], "There is no admin key: set SECKILL_ADMIN_KEY"),
        *(
            (["sale", "list", "--url", address], f"{address} is not an address of the API: use http://… or https://….")
            for address in (
                "ftp://there",
                "http://there:99999",
                "http://there:port",
                "http://there:0",
                "http://[::1",
                "http://the..re",
                f"http://{'there' * 20}",
                "http://there/漢",
            )
        ),
        (["verify-draw", "http://[::1/sales/x"], "http://[::1/sales/x is not an address"),
        (["verify-draw", "http://there/sales/漢"], "http://there/sales/漢 is not an address"),
        (
            ["sale", "list", "--url", "http://127.0.0.1:1"],
            "The API at http://127.0.0.1:1 does not answer (Connection refused): start it, or give --url.",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seckill(monkeypatch, *arguments) in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"seckill: {sentence}")
    assert said.err.count("\n") == 1


def run_with_output(stdout: int | IO[bytes], *arguments: str) -> tuple[int, str]:
    own = {"SECKILL_JWT_SECRET": KEY * 3, "SECKILL_ADMIN_KEY": KEY, "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-m", "seckill", *arguments]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=os.environ | own, check=False)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("command", ["token buyer ann", "sale list --url {url}", "sale list --json --url {url}"])
def test_a_reader_that_has_seen_enough_is_no_surprise(command: str, api: tuple[str, type[Recorder]]) -> None:
    """As in `seckill … | head -1`, whether the command notices on the way or when it is done."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        assert run_with_output(pipe, *command.format(url=api[0]).split()) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_an_output_that_cannot_be_written_is_said() -> None:
    with Path("/dev/full").open("wb") as full:
        code, said = run_with_output(full, "token", "buyer", "ann")
    assert (code, said) == (1, "seckill: The output cannot be written (No space left on device).\n")


def test_a_command_without_an_output_does_what_it_has_to() -> None:
    code, said = run_with_output(subprocess.DEVNULL, "token", "buyer", "ann")
    assert (code, said) == (0, "")
    closed = f"exec {shlex.quote(sys.executable)} -m seckill token buyer ann >&-"
    done = subprocess.run(
        closed, shell=True, stderr=subprocess.PIPE, env=os.environ | {"SECKILL_JWT_SECRET": KEY * 3}, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_looking_at_sales_needs_no_key_and_an_operator_sees_more_with_it(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, asked = api[0], api[1].asked
    assert seckill(monkeypatch, "sale", "list", "--url", url) in (None, 0)
    assert "No sales yet." in capsys.readouterr().out
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    seckill(monkeypatch, "sale", "list", "--url", url)
    assert [authorization for _, _, authorization, _ in asked] == [None, f"Bearer {KEY}"]


def test_a_wrong_admin_key(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api[1].answer = (403, {"code": "forbidden", "detail": "This needs the admin key."})
    monkeypatch.setenv("SECKILL_ADMIN_KEY", KEY)
    assert seckill(monkeypatch, "sale", "pause", "SALE", "--url", api[0]) == 1
    said = capsys.readouterr().err
    assert said == "seckill: The admin key is not the one of this server: set SECKILL_ADMIN_KEY.\n"


def test_the_noted_address_gives_way_to_the_environment(
    api: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(".seckill")
    folder.mkdir()
    (folder / "address").write_text(f"{api[0]}\n")
    assert seckill(monkeypatch, "sale", "list") in (None, 0)
    assert len(api[1].asked) == 1
    monkeypatch.setenv("SECKILL_PORT", "1")
    assert seckill(monkeypatch, "sale", "list") == 1
    assert "http://127.0.0.1:1 does not answer" in capsys.readouterr().err
    monkeypatch.delenv("SECKILL_PORT")
    monkeypatch.setenv("SECKILL_HOST", "127.0.0.2")
    assert seckill(monkeypatch, "sale", "list") == 1
    assert len(api[1].asked) == 1


def test_migrating_says_that_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SECKILL_DATABASE_URL", f"sqlite:///{tmp_path / 'ledger.db'}")
    for _ in range(2):
        assert seckill(monkeypatch, "migrate") in (None, 0)
        assert capsys.readouterr().out == "The database is up to date.\n"


def test_doctor_and_a_database_without_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(tmp_path / "empty.db") as connection:
        connection.execute("PRAGMA user_version = 1")
    monkeypatch.setenv("SECKILL_DATABASE_URL", f"sqlite:///{tmp_path / 'empty.db'}")
    assert seckill(monkeypatch, "doctor") == 1
    printed = capsys.readouterr().out
    assert "mend  ledger: the schema is behind this version: run `seckill migrate`." in printed
    assert "secrets" in printed, "the checks go on"


def test_doctor_fetches_the_keys_of_the_issuer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SECKILL_ADMIN_KEY", "Wq5xTz81LrVnB0mKs7Yd2HfGp9JcUe4A")
    with running_provider() as issuer:
        monkeypatch.setenv("SECKILL_JWKS_URL", f"{issuer.url}/k")
        seckill(monkeypatch, "doctor")
        assert "ok    secrets: there, and the issuer of buyers' tokens shows 1 key" in capsys.readouterr().out
        monkeypatch.setenv("SECKILL_JWKS_URL", f"{issuer.url}/gone")
        assert seckill(monkeypatch, "doctor") == 1
    assert "mend  secrets: SECKILL_JWKS_URL shows no keys" in capsys.readouterr().out


def test_doctor_survives_what_nobody_thought_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Path:
        raise RuntimeError("surprise")

    monkeypatch.setattr("seckill.cli.commands.doctor.find_server", broken)
    assert seckill(monkeypatch, "doctor") == 1
    printed = capsys.readouterr().out
    assert "mend  embedded server: something unexpected went wrong (RuntimeError('surprise'))" in printed
    assert "secrets" in printed, "the checks go on"


def test_every_command_says_what_it_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert seckill(monkeypatch, "--help") in (None, 0)
    printed = capsys.readouterr().out
    for command in set(app) - {"--help", "-h", "--version"}:
        assert re.search(rf"^\W*{command} +[A-Z]", printed, re.MULTILINE), command
    assert "--debug" in printed


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(("command", "code"), [("audit", 2), ("repair", 2), ("chaos", 2), ("migrate", 1)])
def test_a_surprise_is_not_taken_for_something_broken(
    command: str, code: int, *, debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def surprise(*_: Any) -> None:
        raise RuntimeError("surprise")

    monkeypatch.setattr(f"seckill.cli.commands.{command}.environment", surprise)
    assert seckill(monkeypatch, command, *(["--debug"] if debug else [])) == code
    said = capsys.readouterr().err
    assert "surprise" in said
    assert ("Traceback" in said) == debug


@pytest.mark.parametrize("command", ["audit", "repair"])
def test_where_nothing_is_it_says_where_it_looked(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seckill(monkeypatch, command) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"seckill: There is nothing to audit: no data in {tmp_path / '.seckill'}.")
    assert "SECKILL_DATA_DIR" in said


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        (".seckill", "seckill token admin"),
        ("other", "SECKILL_DATA_DIR={there}/other seckill token admin"),
        ("an other", "SECKILL_DATA_DIR='{there}/an other' seckill token admin"),
    ],
)
def test_the_command_that_shows_the_admin_key_finds_it(folder: str, command: str, tmp_path: Path) -> None:
    assert _token_command(Settings(data_dir=tmp_path / folder)) == command.format(there=tmp_path)


def test_the_line_of_the_audit_tells_of_rounds_that_are_on_first() -> None:
    def units(round_id: int, *, on: bool) -> Units:
        return Units(round_id=round_id, sale_id=1, on=on, total=9, available=9, queued=0, live=0, returning=0)

    rounds = [units(number, on=number in (2, 3)) for number in range(1, 9)]
    told = _sold(rounds).split(" · ")
    assert [each.split(":")[0] for each in told] == [*(f"round {n}" for n in (3, 2, 8, 7, 6)), "… and 3 more rounds"]
    assert _sold(rounds[:1]) == "round 1: 0 of 9 sold"
    assert _sold(rounds[:6]).endswith(" · … and 1 more round")


def test_times_are_short() -> None:
    assert instant("2026-11-15T20:41:05.123Z") == "2026-11-15 20:41:05Z"
    assert instant("2026-11-16T04:41:05+08:00") == "2026-11-15 20:41:05Z"


@pytest.mark.parametrize(("provider", "pays_here"), [("sandbox", True), ("callback", False)])
def test_up_shows_how_to_pay_only_where_that_pays(
    provider: str, pays_here: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(admin_key=Secret(KEY), jwt_secret=Secret(KEY * 2), payment_provider=provider)
    known = Greeting(buyer_token="TOKEN", sale_id="SALE", has_help=False)
    greet(settings, "http://127.0.0.1:8000", known, demo=True)
    shown = capsys.readouterr().out
    assert "/v1/sales/SALE/orders" in shown
    assert ("/pay " in shown, "sandbox" in shown) == (pays_here, pays_here)
