"""People are told which field is wrong, and why."""

import msgspec
import pytest

from seckill.web.line.line_schemas import LinePatch
from seckill.web.problems import HttpProblem
from seckill.web.requests.request_body import decode
from seckill.web.schemas import NewSale

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
