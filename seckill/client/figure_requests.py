"""Requests of operators who look back at a sale; see `requests.py`."""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from seckill.client.requests import Request, query_of

Document = dict[str, Any]


def summary(sale_id: str, round_: str | None = None) -> Request[Document]:
    return _of_sale(sale_id, f"summary{query_of(round=round_)}")


def history(
    sale_id: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    step_s: int | None = None,
    round_: str | None = None,
) -> Request[Document]:
    span = {"from": _written(since), "to": _written(until)}
    return _of_sale(sale_id, f"history{query_of(**span, step=step_s, round=round_)}")


def timeline(sale_id: str, *, limit: int | None = None) -> Request[Document]:
    return _of_sale(sale_id, f"timeline{query_of(limit=limit)}")


def alarms(*, on: bool = False, sale_id: str | None = None, limit: int | None = None) -> Request[Document]:
    """`on`: only those that last now."""
    query = query_of(on="true" if on else None, sale_id=sale_id, limit=limit)
    return Request(method="GET", path=f"/v1/admin/alarms{query}", answer=dict, repeatable=True)


def _of_sale(sale_id: str, what: str) -> Request[Document]:
    path = f"/v1/admin/sales/{quote(sale_id, safe='')}/{what}"
    return Request(method="GET", path=path, answer=dict, repeatable=True)


def _written(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
