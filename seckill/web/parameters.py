"""What several addresses read from their path or query in the same way."""

from starlette.requests import Request

from seckill.web.problems import invalid, not_found

PAGE_MAX = 100
PAGE_DEFAULT = 20
ID_DIGITS_MAX = 18  # fits into the ledger's columns


def page_size(request: Request) -> int:
    text = request.query_params.get("limit", str(PAGE_DEFAULT))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= PAGE_MAX):
        raise invalid("limit", f"must be a number from 1 to {PAGE_MAX}")
    return int(text)


def id_in_path(request: Request, name: str) -> int:
    """What cannot be the number of a row does not exist."""
    found = row_id(request.path_params[name])
    if found is None:
        raise not_found()
    return found


def row_id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= ID_DIGITS_MAX else None
