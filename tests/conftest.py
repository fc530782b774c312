import os

import pytest
from hypothesis import HealthCheck, settings

# How long anything takes is no reason to fail: the machine may be busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest_plugins = [
    "tests.collection_memory",  # before all that is large
    "pytester",
    "tests.patience",
    "tests.quick",
    "tests.long_first",
    "tests.fixtures.statements",
    "tests.fixtures.valkey",
    "tests.fixtures.backends",
    "tests.fixtures.cluster",
    "tests.fixtures.postgres",
    "tests.fixtures.mariadb",
    "tests.fixtures.cutting",
    "tests.fixtures.rabbitmq",
]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on what the developer has exported."""
    for name in list(os.environ):
        if name.startswith("SECKILL_"):
            monkeypatch.delenv(name)
