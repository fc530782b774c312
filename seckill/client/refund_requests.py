"""Requests of operators about refunds; see `requests.py`."""

from typing import Any
from urllib.parse import quote

from seckill.client.requests import Request

Document = dict[str, Any]


def refunds() -> Request[Document]:
    return Request(method="GET", path="/v1/admin/refunds", answer=dict, repeatable=True)


def made_by_hand(refund_id: str, reason: str | None = None) -> Request[Document]:
    path = f"/v1/admin/refunds/{quote(refund_id, safe='')}/done"
    return Request(method="POST", path=path, answer=dict, reason=reason, repeatable=True)
