import pytest

from seckill.domain.trace import Trace, read_trace

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize("flags", ["00", "01", "02", "03", "ff"])
def test_what_is_sound_is_read_and_written(flags: str) -> None:
    sampled = bool(int(flags, 16) & 1)
    assert read_trace(f"00-{TRACE_ID}-{SPAN_ID}-{flags}".encode()) == Trace(TRACE_ID, SPAN_ID, sampled)
    assert str(Trace(TRACE_ID, SPAN_ID, sampled)) == f"00-{TRACE_ID}-{SPAN_ID}-0{int(sampled)}"


def test_later_versions_may_have_more_behind() -> None:
    assert read_trace(f"cc-{TRACE_ID}-{SPAN_ID}-01-what-will-be".encode()) == Trace(TRACE_ID, SPAN_ID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"00-{TRACE_ID}-{SPAN_ID}-01-",
        f"00-{TRACE_ID}-{SPAN_ID}-1",
        f"00-{TRACE_ID}-{SPAN_ID}-01 ",
        f"ff-{TRACE_ID}-{SPAN_ID}-01",
        f"cc-{TRACE_ID}-{SPAN_ID}-01what-will-be",
        f"00-{TRACE_ID.upper()}-{SPAN_ID}-01",
        f"00-{'0' * 32}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-01\n",
        f"00-{'٣' * 32}-{SPAN_ID}-01",
    ],
)
def test_what_is_not_is_none(text: str) -> None:
    assert read_trace(text.encode()) is None
