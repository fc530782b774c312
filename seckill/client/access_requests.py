"""Requests about operators' keys, the record and buyers' standing; see `requests.py`."""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from seckill.client.requests import Request, query_of

Document = dict[str, Any]


def create_operator(name: str, role: str, expires_in_s: int | None) -> Request[Document]:
    body = {"name": name, "role": role, "expires_in_s": expires_in_s}
    return Request(method="POST", path="/v1/admin/operators", answer=dict, body=body)


def operators() -> Request[Document]:
    return Request(method="GET", path="/v1/admin/operators", answer=dict, repeatable=True)


def revoke_operator(key_id: str) -> Request[Document]:
    return Request(method="DELETE", path=f"/v1/admin/operators/{quote(key_id, safe='')}", answer=dict, repeatable=True)


def record(
    *,
    who: str | None = None,
    what: str | None = None,
    sale_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Request[Document]:
    query = query_of(
        who=who,
        what=what,
        sale_id=sale_id,
        since=None if since is None else since.isoformat(),
        until=None if until is None else until.isoformat(),
        limit=limit,
        after=after,
    )
    return Request(method="GET", path=f"/v1/admin/record{query}", answer=dict, repeatable=True)


def blocked_buyers(*, buyer: str | None = None, after: str | None = None) -> Request[Document]:
    query = query_of(buyer=buyer, after=after)
    return Request(method="GET", path=f"/v1/admin/buyers{query}", answer=dict, repeatable=True)


def act_on_buyer(verb: str, buyer: str, reason: str) -> Request[Document]:
    """`block` or `unblock`."""
    body = {"buyer": buyer, "reason": reason}
    return Request(method="POST", path=f"/v1/admin/buyers/{verb}", answer=dict, body=body, repeatable=True)


def end_tokens(buyer: str | None, before: datetime | None, reason: str) -> Request[Document]:
    """`buyer`: None for all of them."""
    body: dict[str, Any] = {"reason": reason}
    if before is not None:
        body["before"] = before.isoformat()
    if buyer is None:
        return Request(method="POST", path="/v1/admin/tokens/end", answer=dict, body=body)
    return Request(method="POST", path="/v1/admin/buyers/end-tokens", answer=dict, body={"buyer": buyer, **body})
