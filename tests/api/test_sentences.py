"""The Chinese sentences of the console keep step with the server's English ones."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from seckill.audit.invariants import INVARIANTS
from seckill.domain.recurrence import BadRecurrence, Recurrence
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.operations import repair
from seckill.web.pages.pages import STATIC
from seckill.web.requests import request_body

PACKAGE = Path(request_body.__file__).parents[2]
# Calls whose last text is said to an operator, or whose first is.
SAYING = {
    "finding_about",
    "add",
    "invalid",
    "BadRecurrence",
    "NotPossible",
    "NotInForce",
    "LedgerRefused",
    "BadTarget",
    "BadLine",
}
SAYING_FIRST = {"Step", "Absent"}
# An examination of a server notes its findings with these calls.
NOTING = {"health.mend.append", "health.advice.append", "advice.append"}
FILES = [
    *(
        PACKAGE / "web" / f"{name}.py"
        for name in (
            "sales/sales",
            "sales/items",
            "sales/door_of_sale",
            "door/audience",
            "door/audience_file",
            "requests/uploaded_lines",
            "orders/dead_letters",
            "orders/order_actions",
            "console/console_figures",
            "buyers/demo_sign_in",
            "console/repair",
            "console/audit",
            "webhooks/webhooks",
            "operators/operator_keys",
            "buyers/buyer_standing",
            "sales/vouchers",
            "sales/voucher_file",
            "console/looking_back",
        )
    ),
    *(PACKAGE / "domain" / f"{name}.py" for name in ("recurrence", "sale_change", "webhook_target")),
    PACKAGE / "engine" / "webhooks" / "desk.py",
    PACKAGE / "backends" / "sql" / "record_orders.py",
    PACKAGE / "engine" / "orders" / "dead_letters.py",
    PACKAGE / "operations" / "repair.py",
    PACKAGE / "operations" / "server_look.py",
    *(PACKAGE / "operations" / "doctor" / f"{name}.py" for name in ("gate", "database", "certificate", "clock_skew")),
    *sorted((PACKAGE / "audit").glob("*.py")),
]


def table() -> dict[str, str]:
    source = (STATIC / "app" / "console" / "sentences.js").read_text(encoding="utf-8")
    text = r'"((?:[^"\\]|\\.)*)"'
    found = re.findall(rf"^  {text}: {text},$", source, re.MULTILINE)
    assert len(found) == len(re.findall(r'^  "', source, re.MULTILINE)), "a line of another form"
    return {english.replace('\\"', '"'): chinese for english, chinese in found}


def is_translated(says: str) -> bool:
    parts = (re.split(r"({\w+})", english) for english in table())
    patterns = ("".join(".+?" if part.startswith("{") else re.escape(part) for part in each) for each in parts)
    return any(re.fullmatch(pattern, says, re.DOTALL) for pattern in patterns)


def text_of(node: ast.expr) -> str | None:
    """Returns the sentence with examples filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "7" for part in node.values)  # type: ignore[misc]
    return None


def sentences(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        said: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            said = node.args[-1:] if node.func.id in SAYING else []
            said += node.args[:1] if node.func.id in SAYING_FIRST else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in NOTING:
            said = node.args
        elif (isinstance(node, ast.keyword) and node.arg == "says") or (
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("says", "reason")
        ):
            said = [node.value]
        yield from (text for text in map(text_of, said) if text is not None and " " in text)


def test_every_alarm_is_there_in_chinese() -> None:
    said = set(AlarmCause) - {AlarmCause.TEST}  # which no book keeps
    assert sorted(sentence for sentence in said if not is_translated(sentence)) == []


def test_the_same_names_are_filled_in() -> None:
    for english, chinese in table().items():
        names = set(re.findall(r"{(\w+)}", english))
        assert set(re.findall(r"{(\w+)}", chinese)) <= names, english
        assert re.search(r"[\u4e00-\u9fff]", chinese), english
        assert len(names) == len(re.findall(r"{\w+}", english)), f"a name twice: {english}"


def test_everything_that_operators_are_told_is_there_in_chinese() -> None:
    said = {sentence for path in FILES for sentence in sentences(path)}
    said |= {re.sub(r"\\1", "7", sentence) for _, sentence in request_body._SENTENCES}
    said |= {invariant.says for invariant in INVARIANTS}
    said |= {f"limit: round 7: 7. {advice}" for advice in (*repair._ADVICE.values(), repair._LATER)}
    assert len(said) > 80
    assert sorted(sentence for sentence in said if not is_translated(sentence)) == []


@pytest.mark.parametrize("repeat", ["61 * * * *", "0 25 * * *", "0 0 32 * *", "0 0 1 13 *", "0 0 * * 8", "0 0 30 2 *"])
def test_every_field_of_cron_has_a_sentence_of_its_own(repeat: str) -> None:
    recurrence = Recurrence(repeat=repeat, timezone="UTC", begins_ms=0, window_ms=60_000)
    with pytest.raises(BadRecurrence) as raised:
        recurrence.check()
    assert is_translated(str(raised.value))
