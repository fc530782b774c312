import socket
import sys

import pytest

from seckill.operations.doctor.tracing import examine_tracing
from seckill.settings import Settings
from seckill.settings.otel import Tracing


async def test_it_says_whether_and_where_to() -> None:
    off = await examine_tracing(Settings(), Tracing())
    assert off.says.startswith("off")
    assert not off.advice
    with socket.create_server(("127.0.0.1", 0)) as collector:
        where = f"127.0.0.1:{collector.getsockname()[1]}/v1/traces"
        tracing = Tracing(endpoint=f"http://user:password@{where}", ratio=0.01, problems=("A problem.",))
        on = await examine_tracing(Settings(traces_per_second=7), tracing)
        assert on.says.startswith("1.000% of all claims, 7 a second at most")
        assert where in on.says
        assert "password" not in on.says
        assert on.advice == ["A problem."]
    gone = await examine_tracing(Settings(), Tracing(endpoint=f"http://{where}"))
    assert "Nothing answers" in gone.advice[-1]
    assert not (off.mend + on.mend + gone.mend)


async def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    health = await examine_tracing(Settings(), Tracing(endpoint="http://127.0.0.1:9/v1/traces"))
    assert (health.says, "seckill[otel]" in health.advice[0]) == ("off", True)
