"""One route, with what the OpenAPI document says about it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.operator import Role
from seckill.settings import Settings

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    summary: str
    handler: Handler | None  # None: answered before the framework, see claim.py
    who: str = "all"  # all | buyer | operator | provider
    status: int = 200
    answer: type[msgspec.Struct] | None = None
    media_type: str = "application/json"
    also: tuple[tuple[int, str], ...] = ()  # other statuses with the same body
    others: tuple[tuple[int, str, type[msgspec.Struct]], ...] = ()  # statuses with another body
    empty_answers: tuple[tuple[int, str], ...] = ()
    body: type[msgspec.Struct] | None = None
    upload: str | None = None  # the media type of a body that is not JSON
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    problems: tuple[int, ...] = ()
    role: Role | None = None  # the lowest role that may call it; every route of operators has one
    open_to_all: Callable[[Settings], bool] | None = None  # whether the settings let everyone call it all the same

    def __post_init__(self) -> None:
        if (self.who == "operator") is (self.role is None):
            raise ValueError(f"{self.method} {self.path}: a route of operators has a role, and no other has one")
