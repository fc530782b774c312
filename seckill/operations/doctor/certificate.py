"""Checks how long a server's TLS certificate is still valid. Open connections outlive it, so no one notices its end
before the next restart."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import urlsplit

from cryptography import x509

from seckill.operations.doctor.examination import Health

WITHIN_S = 5.0
# Long enough for an authority that signs by hand.
ENDS_WITHIN = timedelta(days=14)
AMQPS_PORT = 5671


class Channel(Protocol):
    """An asyncio transport or stream writer."""

    def get_extra_info(self, name: str) -> object: ...


def check_certificate(health: Health, whose: str, channel: Channel | None) -> None:
    """Checks the certificate of the server at the other end, if the connection is encrypted."""
    encrypted = None if channel is None else channel.get_extra_info("ssl_object")
    if isinstance(encrypted, ssl.SSLObject | ssl.SSLSocket) and (served := encrypted.getpeercert(binary_form=True)):
        note_end(health, whose, served, datetime.now(UTC))


def note_end(health: Health, whose: str, served: bytes, now: datetime) -> None:
    ends = x509.load_der_x509_certificate(served).not_valid_after_utc
    if ends - now >= ENDS_WITHIN:
        return
    days = max(0, (ends - now).days)
    when = f"in {days} day{'' if days == 1 else 's'}" if ends > now else "already"
    health.advice.append(
        f"The TLS certificate of {whose} ends {when} ({ends:%Y-%m-%d %H:%M} UTC): renew it there, because new "
        "connections fail then."
    )


async def check_served_certificate(health: Health, whose: str, url: str) -> None:
    """Checks the certificate of a server that speaks TLS from the first byte on. It is not verified here, and a server
    that does not answer now is passed over: both have been dealt with before."""
    address = urlsplit(url)
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(WITHIN_S):
            _, writer = await asyncio.open_connection(address.hostname, address.port or AMQPS_PORT, ssl=anybody)
    except (OSError, TimeoutError):
        return
    check_certificate(health, whose, writer)
    writer.close()
