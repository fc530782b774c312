"""`seckill verify-draw`: with draws made by hand, from a file and from a server that says what it likes."""

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seckill.client.draw_check import Draw, Witness, check
from tests.cli.test_command_line import seckill
from tests.draws import BEACON, DUE, FLAWED, SEED, SOUND, SOURCE, drawn, from_source, hashed, listed

SHOP = Ed25519PrivateKey.from_private_bytes(b"s" * 32)


def verify(monkeypatch: pytest.MonkeyPatch, draw: Any, folder: Path, *options: str) -> Any:
    file = folder / "draw.json"
    file.write_text(draw if isinstance(draw, str) else json.dumps(draw))
    return seckill(monkeypatch, "verify-draw", str(file), *options)


@pytest.mark.parametrize("name", SOUND)
def test_a_draw_by_the_definition_is_as_drawn(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert verify(monkeypatch, SOUND[name], tmp_path) == 0
    said = capsys.readouterr().out
    assert "as drawn" in said
    assert "What this does not prove" in said
    missed = SOUND[name].get("beacon_missed_at") is not None
    assert ("there was no beacon" in said) is (SOUND[name]["beacon"] is None and not missed)
    assert ("is said not to have answered for 600 s" in said) is missed


@pytest.mark.parametrize("name", FLAWED)
def test_what_was_done_to_a_draw_is_found_and_named(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    draw, codes = FLAWED[name]
    assert verify(monkeypatch, draw, tmp_path, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["as_drawn"] is False
    assert {flaw["code"] for flaw in told["flaws"]} == codes


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--commitment", hashed(SEED)), None),
        (("--commitment", hashed(SEED).upper()), None),
        (("--commitment", hashed("another")), "commitment"),
        (("--list-hash", drawn()["list_hash"]), None),
        (("--list-hash", listed(drawn()["entries"][1:])), "noted_list"),
    ],
)
def test_who_has_noted_what_was_published_before_finds_out_that_all_of_it_was_made_anew(
    options: tuple[str, str],
    code: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """A late entry, with everything computed anew for it, is sound in itself."""
    assert verify(monkeypatch, drawn(), tmp_path, *options, "--json") == (0 if code is None else 1)
    assert [flaw["code"] for flaw in json.loads(capsys.readouterr().out)["flaws"]] == ([] if code is None else [code])


def test_a_receipt_says_whether_my_entry_is_on_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = drawn()["entries"].index("plum") + 1
    mine = tmp_path / "mine.json"
    in_time, late = 1_795_168_000_000, 1_795_168_800_000
    mine.write_text(f"plum.{in_time}.00ff\n")
    assert verify(monkeypatch, drawn(), tmp_path, "--receipt", str(mine)) == 0
    assert f"Your entry has place {place}." in capsys.readouterr().out
    mine.write_text(json.dumps({"entry_id": "other", "receipt": f"other.{in_time}.00ff"}))
    assert verify(monkeypatch, drawn(), tmp_path, "--receipt", str(mine)) == 1
    assert "other is not on the list" in capsys.readouterr().out
    mine.write_text(f"other.{late}.00ff")
    assert verify(monkeypatch, drawn(), tmp_path, "--receipt", str(mine)) == 0
    assert "came after the list was closed" in capsys.readouterr().out
    mine.write_text(f"plum.{late}.00ff")
    assert verify(monkeypatch, drawn(), tmp_path, "--receipt", str(mine)) == 1
    assert "late: The entry plum was made after" in capsys.readouterr().out
    for nothing in ("", "plum", "plum.x.00ff", "plum.1.7-00-l00", f"plum.1.7-00-m{'0' * 64}", "{}", '{"receipt": 1}'):
        mine.write_text(nothing)
        assert verify(monkeypatch, drawn(), tmp_path, "--receipt", str(mine)) == 2, nothing


def signed(entry_id: str, joined_ms: int, round_: str = "7", by: Ed25519PrivateKey = SHOP) -> str:
    """Written from the description in docs/door.md alone."""
    head = f"{entry_id}.{joined_ms}.{round_}"
    return f"{head}-{by.sign(f'receipt {head}'.encode()).hex()}"


def signed_with_others(entry_id: str, joined_ms: int, round_: str = "7") -> str:
    """The same for the second of three who share a signature."""
    said = [f"{each}.{joined_ms}.{round_}" for each in ("ahead", entry_id, "behind")]
    first, mine, last = (hashed(f"receipt {each}") for each in said)
    root = hashed(f"node {hashed(f'node {first} {mine}')} {last}")
    return f"{said[1]}-{SHOP.sign(f'receipts {root}'.encode()).hex()}-l{first}-r{last}"


def test_whoever_was_left_out_can_prove_it_to_a_stranger(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    in_time, late = 1_795_168_000_000, 1_795_168_800_000
    key = SHOP.public_key().public_bytes_raw().hex()
    draw = drawn() | {"round": "7", "receipt_key": key}
    mine = tmp_path / "mine.txt"

    def verified(receipt: str, *options: str) -> tuple[int, str]:
        mine.write_text(receipt)
        code = verify(monkeypatch, draw, tmp_path, "--receipt", str(mine), *options)
        return code, "".join(capsys.readouterr())

    code, said = verified(signed("other", in_time))
    assert code == 1
    assert "signed, proves that it was there before the list was closed" in said
    code, said = verified(signed("plum", in_time), "--key", key)
    assert code == 0
    assert "only the shop" not in said
    assert verified(signed("other", late))[0] == 0, "it came too late, and says so itself"
    code, said = verified(signed_with_others("other", in_time))
    assert (code, "signed, proves that it was there" in said) == (1, True)
    assert verified(signed_with_others("plum", in_time), "--key", key)[0] == 0
    # No one can make one up: another's signature, another time, another entry, another round, nothing at all.
    forged = signed("other", in_time, by=Ed25519PrivateKey.generate())
    earlier = signed("other", late).replace(str(late), str(in_time))
    others = signed("plum", in_time).replace("plum", "other")
    shared = signed_with_others("plum", in_time)
    turned = shared.replace("-l", "-x").replace("-r", "-l").replace("-x", "-r")
    renamed, shorter = shared.replace("plum", "other"), shared.rpartition("-")[0]
    empty = f"other.{in_time}.7-"
    for receipt in (forged, earlier, others, renamed, turned, shorter, f"{empty}{'00' * 64}", empty):
        code, said = verified(receipt)
        assert (code, "is not signed with the key" in said) == (2, True), receipt
    code, said = verified(signed("other", in_time, "8"))
    assert (code, "is of round 8" in said) == (2, True), "of another draw, in which it may well be"
    another = Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    code, said = verified(signed("plum", in_time), "--key", another)
    assert code == 2, "not signed with the key that I noted"
    draw = draw | {"receipt_key": another}
    code, said = verified(signed("other", in_time), "--key", key)
    assert (code, "key: The key of the receipts is not" in said, "proves" in said) == (1, True, True)


def test_the_source_of_the_beacon_can_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("seckill.cli.commands.verify_draw.REPEAT_FOR_S", 0.0)
    with published({"entries": [], "round": DUE, "randomness": BEACON}) as url:
        source = SOURCE | {"url": f"{url}/v1/sales/abc/draw/{{round}}"}
        assert verify(monkeypatch, from_source(beacon_source=source), tmp_path, "--ask-beacon") == 0
        assert "--ask-beacon" not in capsys.readouterr().out
        draw = from_source(beacon_source=source, beacon="another")
        assert verify(monkeypatch, draw, tmp_path, "--ask-beacon", "--json") == 1
        flaws = json.loads(capsys.readouterr().out)["flaws"]
        assert [flaw["code"] for flaw in flaws] == ["beacon"], "drawn with it, and not what the source says"
        early = from_source(beacon_source=source, listed_at="2026-11-20T09:00:00.000Z")
        assert verify(monkeypatch, early, tmp_path, "--ask-beacon") == 2, "it answers with another number"
    assert verify(monkeypatch, from_source(beacon_source=source), tmp_path, "--ask-beacon") == 2, "it is away"
    assert verify(monkeypatch, drawn(), tmp_path, "--ask-beacon") == 2


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        ("{", "is not a draw"),
        ([1], "is not a draw"),
        (drawn() | {"entries": [1]}, "is not a draw"),
        (drawn() | {"entries": 8}, "has no entries"),
        (drawn() | {"seed": None, "entries": []}, f"Note the commitment: {hashed(SEED)}"),
        (drawn() | {"algorithm": "md5"}, "made by md5"),
    ],
)
def test_what_cannot_be_told_is_2(
    draw: Any, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert verify(monkeypatch, draw, tmp_path) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.json"],
        ["http://127.0.0.1:1/v1/sales/x/draw"],
        ["http://127.0.0.1:1/elsewhere"],
        ["http://127.0.0.1:1/sales/x", "--commitment", "abc"],
        ["draw.json", "--receipt", "nowhere.json"],
    ],
)
def test_what_is_not_there_is_2_in_one_sentence(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seckill.cli.commands.verify_draw.REPEAT_FOR_S", 0.0)
    Path("draw.json").write_text(json.dumps(drawn()))
    assert seckill(monkeypatch, "verify-draw", *arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@contextmanager
def published(draw: dict[str, Any], a_page: int = 3) -> Iterator[str]:
    """A server with a draw, whose entries come in pages."""
    entries = draw["entries"]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            answer = draw | {"entries": len(entries)}
            if parts.path.endswith("/draw/entries"):
                start = int(parse_qs(parts.query).get("after", ["0"])[0])
                end = start + a_page
                answer = {"entries": entries[start:end], "next": end if end < len(entries) else None}
            body = json.dumps(answer if "/v1/sales/abc/draw" in parts.path else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("path", ["/v1/sales/abc/draw", "/sales/abc", "/v1/sales/abc/", "/shop/sales/abc"])
def test_a_server_is_asked_for_all_pages(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with published(drawn()) as url:
        assert seckill(monkeypatch, "verify-draw", url + path) == 0
    with published(FLAWED["the last two places are swapped"][0]) as url:
        assert seckill(monkeypatch, "verify-draw", url + path) == 1


def test_a_long_list_takes_a_bounded_memory(tmp_path: Path) -> None:
    """It runs in a process of its own, to see its memory. A million take five times as much."""
    entries = [f"{number:026d}" for number in range(200_000)]
    draw = drawn(entries)
    file = tmp_path / "draw.json"
    file.write_text(json.dumps(draw))
    code = (
        "import sys\nfrom pathlib import Path\nfrom seckill.cli import main\n"
        f"sys.argv = ['seckill', 'verify-draw', {str(file)!r}]\n"
        "try: main()\nexcept SystemExit as end: code = end.code\n"
        # Not getrusage: its figure begins with what the process that started this one had.
        "print(code, Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, kilobytes = done.stdout.splitlines()[-1].split()
    assert status == "0"
    assert int(kilobytes) < 250 * 1024, done.stdout


def test_the_check_knows_nothing_of_ours() -> None:
    """A mistake in code that it shared with the drawing would be in both."""
    import seckill.client.draw_check as module  # noqa: PLC0415

    assert "seckill." not in Path(module.__file__).read_text().partition('"""\n')[2]


def test_any_one_exchange_of_places_is_found() -> None:
    draw = drawn([f"e{number}" for number in range(60)])
    entries = draw["entries"]
    facts = {name: draw[name] for name in ("commitment", "list_hash", "seed", "beacon")}
    for one in range(60):
        for other in range(one):
            changed = list(entries)
            changed[one], changed[other] = changed[other], changed[one]
            flaws = check(Draw(entries=changed, **facts), Witness()).flaws
            assert [flaw.code for flaw in flaws] == ["places"], (one, other)
