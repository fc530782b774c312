"""What the shop asks of seckill."""

import time
from functools import cache
from typing import Any

import jwt
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache as short_memory
from django.db import transaction

from bookshop.models import FlashSale
from seckill.client import Client, Refused, Sale

TOKEN_LIFETIME_S = 15 * 60
PAY_WITHIN_S = 10 * 60


@cache
def seckill() -> Client:
    """One for the whole process and all its threads, with the admin key."""
    return Client(settings.SECKILL_URL, settings.SECKILL_ADMIN_KEY)


def as_buyer(user: User) -> Client:
    """The same connections for a buyer. `sub` is the shop's own id: events come back with it as `buyer`."""
    claims = {"sub": str(user.pk), "exp": int(time.time()) + TOKEN_LIFETIME_S}
    return seckill().signed_in(jwt.encode(claims, settings.SECKILL_JWT_SECRET, "HS256"))


def sale_now(sale_id: str) -> Sale:
    """How the sale stands. However many look at the page, seckill is asked once a second."""
    found: Any = short_memory.get_or_set(sale_id, lambda: seckill().sale(sale_id), timeout=1)
    sale: Sale = found
    return sale


def announce(sale: FlashSale) -> None:
    """With its key, it is announced once, however often this is called."""
    try:
        made = seckill().create_sale(
            sale.book.title,
            units=sale.units,
            price_cents=sale.price_cents,
            currency=settings.CURRENCY,
            begins_at=sale.begins_at,
            ends_at=sale.ends_at,
            pay_within_s=PAY_WITHIN_S,
            external_id=str(sale.pk),
            metadata={"slug": sale.book_id},
            description=sale.book.text,
            list_price_cents=max(sale.book.price_cents, sale.price_cents),
            return_url=f"{settings.SHOP_URL}/books/{sale.book_id}/",
            vouchers=bool(sale.code_list),
            published=not sale.code_list,
            key=str(sale.pk),
        )
        if sale.code_list:
            _publish_with_codes(made.id, sale.code_list)
    except Refused:
        sale.delete()  # nobody has seen anything of it: the units are free again
        raise
    FlashSale.objects.filter(pk=sale.pk).update(sale_id=made.id, codes="")


def _publish_with_codes(sale_id: str, codes: list[str]) -> None:
    """Nobody sees the sale before its codes are there. All of them are, or none: so the count tells whether an upload
    that was not answered has arrived."""
    if seckill().count_vouchers(sale_id).missing:
        seckill().upload_vouchers(sale_id, codes)
    seckill().change_sale(sale_id, {"published": True})


def announce_all() -> None:
    """Those whose units were set aside, and then the shop was stopped, or seckill did not answer."""
    for sale in FlashSale.objects.filter(sale_id=None):
        announce(sale)


def set_aside(sale: FlashSale) -> None:
    """First the units are set aside, then the sale is announced: never the other way round, or they could be sold
    twice in between."""
    sale.set_aside = sale.units
    sale.save(force_insert=True)
    transaction.on_commit(lambda: announce(sale))
