"""Templates, and what all of them need."""

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

CURRENCY = "EUR"
templates = Jinja2Templates(Path(__file__).parent / "templates")


def money(cents: int) -> str:
    return f"{cents / 100:.2f} €"


templates.env.filters["money"] = money


def show(request: Request, template: str, *, status: int = 200, **facts: Any) -> Response:
    user = getattr(request.state, "user", None)  # put there by `people.visitor`
    return templates.TemplateResponse(request, template, {"user": user, **facts}, status_code=status)
