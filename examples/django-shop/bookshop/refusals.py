"""What a page says when seckill says no, or nothing."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from seckill.client import ClientError, Refused

# In the words of this shop, which `words.py` has in Chinese; for all others, seckill's own sentence will do.
TEXTS = {
    "sold_out": "Sold out: you were quick, others were quicker. Units that are not paid for come back.",
    "limit_reached": "You have had yours: one for each of us.",
    "not_started": "Not yet: the sale has not begun.",
    "ended": "The sale is over.",
}


class Refusals:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, ClientError):
            return None
        if isinstance(error, Refused) and error.status < 500:
            return render(request, "no.html", {"says": TEXTS.get(error.code, str(error))}, status=error.status)
        # Nobody knows yet what became of it. The same form again, with the same key, gets the one true answer.
        return render(request, "again.html", {"said": request.POST.items()}, status=503)
