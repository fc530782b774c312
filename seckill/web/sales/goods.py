"""Checks what an operator says about the goods of a sale."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

import msgspec

from seckill.domain.goods import Goods, GoodsValue
from seckill.domain.picture import digest_in
from seckill.web.problems import invalid
from seckill.web.requests.metadata import canonical_metadata
from seckill.web.schemas import NewSale, SalePatch

_FIELDS = tuple(field.name for field in fields(Goods))
_TEXTS = ("description", "delivery")
# The characters that RFC 3986 allows in an address, so that it means the same to every reader.
_URL = re.compile(r"https?://[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_LINES = str.maketrans("", "", "\n\t")


def goods_of(new: NewSale, price_cents: int, image_hosts: Sequence[str]) -> Goods:
    given = {name: getattr(new, name) for name in _FIELDS}
    checked: Any = _checked(given, price_cents, image_hosts)
    return Goods(**checked)


def goods_change(patch: SalePatch, price_cents: int, image_hosts: Sequence[str]) -> dict[str, GoodsValue]:
    """Returns the changes that the patch names; null removes a value."""
    given = {name: getattr(patch, name) for name in _FIELDS}
    named = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    return _checked(named, price_cents, image_hosts)


def _checked(given: Mapping[str, Any], price_cents: int, image_hosts: Sequence[str]) -> dict[str, GoodsValue]:
    checked: dict[str, GoodsValue] = dict(given)
    for name in _TEXTS:
        if name in given:
            checked[name] = _text(name, given[name] or "")
    for name in ("terms_url", "return_url"):
        if given.get(name) is not None:
            _check_url(name, given[name])
    if "metadata" in given:
        metadata = given["metadata"]
        checked["metadata"] = None if metadata is None else canonical_metadata(metadata)
    if "images" in given:
        checked["images"] = tuple(given["images"] or ())
        for place, image in enumerate(given["images"] or ()):
            check_image(f"images[{place}]", image, image_hosts)
    if given.get("external_id") is not None:
        check_external_id("external_id", given["external_id"])
    list_price = given.get("list_price_cents")
    if list_price is not None and list_price < price_cents:
        raise invalid("list_price_cents", "must not be less than price_cents")
    return checked


def _text(field: str, text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text.translate(_LINES).isprintable():
        raise invalid(field, "must be text: letters, signs, spaces and line breaks")
    return text


def check_external_id(field: str, text: str) -> None:
    if not text.isprintable() or text != text.strip():
        raise invalid(field, "must be printable characters, with no space at either end")


def _check_url(field: str, text: str) -> None:
    if not _URL.fullmatch(text) or _host(text) is None:
        raise invalid(field, "must be an address that begins with https:// or http://")


def _host(url: str) -> str | None:
    """Returns the host, with its port if it has one, or None for an address that no one should follow."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or "@" in parts.netloc:
        return None
    return parts.hostname if port is None else f"{parts.hostname}:{port}"


def uploaded_in(images: Sequence[str], of_items: Sequence[str | None]) -> dict[str, str]:
    """Returns the fields with uploaded pictures, by digest."""
    named = {f"images[{place}]": image for place, image in enumerate(images)}
    named |= {f"items[{place}].image": image for place, image in enumerate(of_items) if image}
    digests = {field: digest_in(image) for field, image in named.items()}
    return {digest: field for field, digest in digests.items() if digest is not None}


def check_image(field: str, text: str, image_hosts: Sequence[str]) -> None:
    if digest_in(text) is not None:  # the ledger knows whether it exists
        return
    host = _host(text) if _URL.fullmatch(text) and text.startswith("https://") else None
    if host is None:
        raise invalid(field, "must be an address that begins with https://, or one that an upload was answered with")
    if not any(_is_of(host, allowed) for allowed in image_hosts):
        raise invalid(field, f"{host} is not among the hosts that SECKILL_IMAGE_HOSTS allows")


def _is_of(host: str, allowed: str) -> bool:
    return host.endswith(allowed[1:]) and host != allowed[2:] if allowed.startswith("*.") else host == allowed
