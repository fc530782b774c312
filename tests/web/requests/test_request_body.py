"""People are told which field is wrong, and why."""

import subprocess
import sys

import msgspec
import pytest

from seckill.web.line.line_schemas import LinePatch
from seckill.web.problems import HttpProblem
from seckill.web.requests.request_body import decode
from seckill.web.schemas import NewSale
from tests.patience import PATIENCE_S

decoder = msgspec.json.Decoder(NewSale)
GOOD = b'"title":"x","begins_at":"2026-01-01T00:00:00Z","ends_at":"2027-01-01T00:00:00Z"'


@pytest.mark.parametrize(
    ("body", "field", "sentence"),
    [
        (b'"units":0', "units", "must be a whole number, 1 or more"),
        (b'"units":"5"', "units", "must be a whole number"),
        (b'"units":1.5', "units", "must be a whole number"),
        (b'"units":10000000000', "units", "must be a whole number, 1000000000 at most"),
        (b'"unit":5', "unit", "is not a field of this request"),
        (b'"items":[{"units":1}]', "items[0].title", "is missing"),
        (b'"items":[{"title":"S","units":1,"colour":1}]', "items[0].colour", "is not a field of this request"),
        (b'"units":5,"currency":"yuan"', "currency", "must be three capital letters, such as CNY"),
        (b'"units":5,"begins_at":"tomorrow"', "begins_at", "must be a time such as 2026-11-20T10:00:00+08:00"),
        (
            b'"units":5,"begins_at":"2026-01-01T00:00:00"',
            "begins_at",
            "must say its time zone, as in 2026-11-20T10:00:00+08:00",
        ),
        (b'"units":5,"title":""', "title", "must not be empty"),
        (b'"units":5,"title":3', "title", "must be text"),
        (b'"units":5,"limit_by":"a b"', "limit_by", "must be 1 to 64 letters, digits and . _ : / -"),
        (b'"units":5,"limit_group":"a/b"', "limit_group", "must be 1 to 64 letters, digits and . _ : -"),
        (b'"units":5,"metadata":[]', "metadata", "must be a JSON object"),
    ],
)
def test_sentences(body: bytes, field: str, sentence: str) -> None:
    with pytest.raises(HttpProblem) as refused:
        decode(b"{" + GOOD + b"," + body + b"}", decoder)
    assert refused.value.extra["errors"] == [{"field": field, "message": sentence}]


def test_sentences_about_a_line() -> None:
    wrong = {
        b'"beacon":"a b"': ("beacon", "must be in ASCII, without spaces and colons"),
        b'"beacon":""': ("beacon", "must not be empty"),
        b'"paused":"yes"': ("paused", "must be true or false"),
        b'"serve_per_s":0': ("serve_per_s", "must be a whole number, 1 or more"),
    }
    for body, (field, sentence) in wrong.items():
        with pytest.raises(HttpProblem) as refused:
            decode(b"{" + body + b"}", msgspec.json.Decoder(LinePatch))
        assert refused.value.extra["errors"] == [{"field": field, "message": sentence}]


@pytest.mark.parametrize("body", [b'{"a": "' + b"[" * 100, b'{"a": "\\\n' + b"[" * 100 + b'"}'])
def test_what_is_in_a_string_is_no_nesting_even_if_nobody_closes_it(body: bytes) -> None:
    with pytest.raises(HttpProblem) as refused:
        decode(body, msgspec.json.Decoder(dict))
    assert refused.value.detail == "The body is not valid JSON."


# A whole body of what is slowest to look through. Larger than any that is read, so that it would take longer than
# anybody waits if the work grew with the square of the length.
HARD = {
    "quotation marks": b"[" * 33 + b'"' + b'\\"' * (1 << 20),
    "names": b'{"m":{' + b",".join(b'"%x":1' % i for i in range(1 << 18)) + b"}}",
}


@pytest.mark.parametrize("kind", HARD)
def test_the_work_grows_with_the_length_of_the_body_and_not_with_its_square(kind: str) -> None:
    """An API process does nothing else meanwhile: one buyer could keep all others waiting."""
    program = f"""
import msgspec
from seckill.web.problems import HttpProblem
from seckill.web.requests.request_body import decode
from tests.web.requests.test_request_body import HARD
try:
    decode(HARD[{kind!r}], msgspec.json.Decoder(dict))
except HttpProblem as refused:
    assert refused.status == 400
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_S)
