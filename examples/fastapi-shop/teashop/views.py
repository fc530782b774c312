"""Templates, and what all of them need."""

from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from teashop.words import LANGUAGES, language_of, said

CURRENCY = "EUR"
templates = Jinja2Templates(Path(__file__).parent / "templates")


def money(cents: int) -> str:
    return f"{cents / 100:.2f} €"


templates.env.filters["money"] = money


def show(request: Request, template: str, *, status: int = 200, **facts: Any) -> Response:
    language = language_of(request)
    always = {
        "user": getattr(request.state, "user", None),  # put there by `people.visitor`
        "language": language,
        "languages": LANGUAGES,
        "t": partial(said, language),
        "here": _here(request),
    }
    answer = templates.TemplateResponse(request, template, always | facts, status_code=status)
    answer.headers["Vary"] = "Accept-Language, Cookie"
    return answer


def _here(request: Request) -> str:
    """Where somebody who chooses another language comes back to."""
    if request.method != "GET":  # what a form has led to
        return "/"
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")
