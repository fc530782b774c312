"""The API over HTTP, for shops and scripts in Python: `Client`, and `AsyncClient` for asyncio."""

from seckill.client.asynchronous import AsyncClient
from seckill.client.blocking import Client
from seckill.client.documents import (
    Audit,
    AuditFinding,
    AuditResult,
    AuditUnits,
    Claimed,
    Custody,
    DeadLetter,
    Order,
    Orders,
    Round,
    Sale,
    Sales,
    Try,
)
from seckill.client.errors import (
    ClientError,
    Conflict,
    Denied,
    Invalid,
    NoAnswer,
    NotFound,
    Refused,
    TooMany,
    Unavailable,
)

__all__ = [
    "AsyncClient",
    "Audit",
    "AuditFinding",
    "AuditResult",
    "AuditUnits",
    "Claimed",
    "Client",
    "ClientError",
    "Conflict",
    "Custody",
    "DeadLetter",
    "Denied",
    "Invalid",
    "NoAnswer",
    "NotFound",
    "Order",
    "Orders",
    "Refused",
    "Round",
    "Sale",
    "Sales",
    "TooMany",
    "Try",
    "Unavailable",
]
