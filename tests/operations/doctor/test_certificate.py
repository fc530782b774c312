"""A certificate that ends soon is noted, in time and not earlier."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seckill.operations.doctor.certificate import check_certificate, check_served_certificate, note_end
from seckill.operations.doctor.examination import Health
from tests.deploy.authority import Authority


def noted(folder: Path, days: float, later: timedelta = timedelta()) -> list[str]:
    health = Health("")
    served = ssl.PEM_cert_to_DER_cert(Authority(folder, days).cert.read_text())
    note_end(health, "Valkey/Redis", served, datetime.now(UTC) + later)
    return health.advice


@pytest.mark.parametrize(("days", "when"), [(13.5, "in 13 days"), (1.5, "in 1 day"), (0.5, "in 0 days")])
def test_a_certificate_that_ends_soon_is_named(tmp_path: Path, days: float, when: str) -> None:
    [sentence] = noted(tmp_path, days)
    assert sentence.startswith(f"The TLS certificate of Valkey/Redis ends {when} (")


def test_a_certificate_that_has_ended_is_named(tmp_path: Path) -> None:
    [sentence] = noted(tmp_path, 1, later=timedelta(days=2))
    assert " ends already (" in sentence


def test_a_certificate_with_time_left_is_not_named(tmp_path: Path) -> None:
    assert noted(tmp_path, 14.5) == []


async def test_what_is_not_encrypted_or_not_there_has_none() -> None:
    health = Health("")
    check_certificate(health, "the database", None)
    await check_served_certificate(health, "RabbitMQ", "amqps://127.0.0.1:1/")
    assert health.advice == []
