"""Requests of operators about the line of a sale; see `requests.py`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from seckill.client.requests import Request, query_of

Document = dict[str, Any]


def line(
    sale_id: str,
    *,
    state: str | None = None,
    buyer: str | None = None,
    limit: int | None = None,
    after: str | None = None,
    round_: str | None = None,
) -> Request[Document]:
    query = query_of(state=state, buyer=buyer, limit=limit, after=after, round=round_)
    return Request(method="GET", path=f"{_line(sale_id)}{query}", answer=dict, repeatable=True)


def change_line(
    sale_id: str, change: Mapping[str, object], reason: str | None = None, *, round_: str | None = None
) -> Request[Document]:
    path = f"{_line(sale_id)}{query_of(round=round_)}"
    return Request(method="PATCH", path=path, answer=dict, body=change, reason=reason)


def _line(sale_id: str) -> str:
    return f"/v1/admin/sales/{quote(sale_id, safe='')}/line"
