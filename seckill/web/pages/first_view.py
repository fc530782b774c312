"""The first view of a buyers' page, drawn by the server: goods, price, state and times are visible before any script
runs.

The script takes over with the same data, which is in the page, and draws the same. Only then comes anything that
depends on a clock, a buyer or a language. So a view is the same for every visitor, and a CDN can keep it.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

import msgspec

from seckill.domain.money import DECIMALS
from seckill.domain.recurrence import BadRecurrence, zone_of
from seckill.web.pages.page_texts import language_of, tag_of, text
from seckill.web.schemas import Sale

# How many sales of the list are drawn: more would be below the first screen, and come with the script.
LISTED_MAX = 24
# The same as in lists.js: fewer sales are seen at a glance.
SEARCHED_FROM = 12
_GROUPS = {"open": "open", "scheduled": "coming", "paused": "resting", "sold_out": "resting"}
_SIGNS = {"CNY": "CN¥", "EUR": "€", "GBP": "£", "JPY": "JP¥", "USD": "US$"}
_OWN_SIGNS = {("zh", "CNY"): "¥", ("ja", "JPY"): "￥"}
_CHINA = ("Asia/Shanghai", "Asia/Chongqing", "Asia/Harbin", "PRC")
_DATES = {"en": "%-d %b %Y, ", "zh": "%Y年%-m月%-d日 ", "ja": "%Y年%-m月%-d日 "}
_WIDE = re.compile("[\u2e80-\U0010ffff]")
_PALETTES = 6
_PLACES = ((292, 20), (28, 160), (300, 150), (20, 24))
_LONG_PRICE = 13
_LONG_TITLE, _VERY_LONG_TITLE = 60, 140


@dataclass(frozen=True, slots=True)
class FirstView:
    language: str
    title: str
    head: str  # what other sites show for a link to it
    body: str
    data: bytes  # JSON


class SalesShown(msgspec.Struct):
    sales: list[Sale]
    many: int  # how many there are, including those left out here
    older: str | None = None


class Shown(msgspec.Struct, omit_defaults=True):
    sale: Sale | None = None
    list: SalesShown | None = None


def view_of_sale(sale: Sale, prefix: str) -> FirstView:
    language = language_of(sale.title)
    price = price_shown(sale.price_cents, sale.currency, language)
    plain = not sale.images
    body = (
        f'<article class="product{" plain" if plain else ""}"><div class="gallery">{_picture(sale, prefix)}</div>'
        f'<div class="product-text"><h1 class="title {_length(sale.title)}" dir="auto">{html.escape(sale.title)}</h1>'
        f"{_price(sale, language, short=False)}{_left(sale, language)}"
        f'<div class="about"><p class="facts">{_stock(sale, language)}</p>'
        f'<p class="facts">{_period(sale, language)}</p></div>'
        f'<div class="panel"><p class="headline" data-state="{sale.state}">{text(language, f"sale_{sale.state}")}</p>'
        f'<noscript><p class="facts">{text(language, "needs_script")}</p></noscript></div>'
        '<div class="action"><div class="button waits"></div></div></div></article>'
    )
    title = html.escape(sale.title)
    described = html.escape(f"{price} · {text(language, f'sale_{sale.state}')}")
    head = f'<meta name="description" content="{title} · {described}"><meta property="og:title" content="{title}">'
    head += f'<meta property="og:description" content="{described}">'
    for image in [image for image in sale.images if image.startswith("https:")][:1]:
        head += f'<meta property="og:image" content="{html.escape(image)}">'
    return FirstView(language, sale.title, head, body, msgspec.json.encode(Shown(sale=sale)))


def view_of_list(sales: Sequence[Sale], many: int, shop: str, prefix: str) -> FirstView:
    """Draws the list of sales that are not over."""
    language = language_of("".join(sale.title for sale in sales) or shop)
    shown = _in_order(sales)[:LISTED_MAX]
    body = [f"<h1>{text(language, 'sales')}</h1>"]
    if many >= SEARCHED_FROM:
        body.append('<div class="search waits"></div>')
    for group in dict.fromkeys(_GROUPS.values()):
        cards = [_card(sale, language, prefix) for sale in shown if _GROUPS[sale.state] == group]
        if cards:
            heading = text(language, f"group_{group}")
            body.append(f'<section><h2>{heading}</h2><ul class="cards">{"".join(cards)}</ul></section>')
    data = Shown(list=SalesShown(shown, many))
    return FirstView(language, f"{shop} · {text(language, 'sales')}", "", "".join(body), msgspec.json.encode(data))


def _in_order(sales: Sequence[Sale]) -> list[Sale]:
    """Sorts as lists.js does: sales that are on and end soonest come first, those that cannot be bought now last."""
    groups = list(dict.fromkeys(_GROUPS.values()))

    def place(sale: Sale) -> tuple[int, str]:
        group = _GROUPS[sale.state]
        return groups.index(group), sale.begins_at if group == "coming" else sale.ends_at

    return sorted(sales, key=place)


def _card(sale: Sale, language: str, prefix: str) -> str:
    return (
        f'<li><a class="card" href="{html.escape(prefix)}/sales/{html.escape(sale.id)}" data-state="{sale.state}">'
        f'{_picture(sale, prefix)}<div class="card-text"><h3 dir="auto">{html.escape(sale.title)}</h3>'
        f"{_price(sale, language, short=True)}{_left(sale, language)}"
        f'<p class="facts">{_stock(sale, language)}</p><p class="when">{_period(sale, language)}</p></div></a></li>'
    )


def page_around(view: FirstView, shop: str, test: str, prefix: str) -> str:
    banner = f'<p class="test-banner" role="note">{text(view.language, f"test_{test}")}</p>' if test else ""
    shop_link = f'<a class="shop" href="{html.escape(prefix)}/">{html.escape(shop)}</a>'
    return f'{banner}<header class="top">{shop_link}<nav></nav></header><main>{view.body}</main>'


def price_shown(amount: int, currency: str, language: str) -> str:
    """Formats a price as browsers do, except where they differ."""
    if amount == 0:
        return text(language, "free")
    decimals = DECIMALS.get(currency, 2)
    digits = 0 if amount % 10**decimals == 0 else decimals
    number = f"{Decimal(amount).scaleb(-decimals):,.{digits}f}"
    return f"{_OWN_SIGNS.get((language, currency)) or _SIGNS.get(currency) or f'{currency} '}{number}"


def _price(sale: Sale, language: str, *, short: bool) -> str:
    """As Price in goods.js."""
    price = price_shown(sale.price_cents, sale.currency, language)
    several = any(item.price_cents != sale.price_cents for item in sale.items or ())
    price = text(language, "from_price", price=price) if several else price
    more, saved = "", (sale.list_price_cents or 0) - sale.price_cents
    if sale.list_price_cents is not None and saved > 0:
        listed = price_shown(sale.list_price_cents, sale.currency, language)
        more = f' <span class="was"><s>{html.escape(listed)}</s></span>'
        percent = 100 * saved // sale.list_price_cents
        said = text(language, "saving", amount=price_shown(saved, sale.currency, language))
        said = text(language, "saving_percent", percent=percent) if short else said
        more += "" if several or (short and percent == 0) else f' <span class="saving">{html.escape(said)}</span>'
    size = " long" if len(price) > _LONG_PRICE else ""
    return f'<p class="price{size}"><span class="now">{html.escape(price)}</span>{more}</p>'


def _left(sale: Sale, language: str) -> str:
    if sale.state != "open" or not sale.left_percent or sale.lined:
        return ""
    bar = '<span class="bar" aria-hidden="true"><span></span></span>'
    said = text(language, f"left_{sale.left_percent}")
    return f'<div class="left" data-left="{sale.left_percent}">{bar}<span>{said}</span></div>'


def _stock(sale: Sale, language: str) -> str:
    key = "units_and_limit_one" if sale.units == 1 else "units_and_limit"
    return text(language, key, many=f"{sale.units:,}", limit=sale.limit_per_buyer)


def _period(sale: Sale, language: str) -> str:
    """Uses the time in the sale's zone; the script shows the reader's."""
    zone = _zone(sale.timezone)
    begins, ends = (datetime.fromisoformat(at).astimezone(zone) for at in (sale.begins_at, sale.ends_at))
    date = _DATES[language]
    until = "%H:%M" if begins.date() == ends.date() else f"{date}%H:%M"
    first = f'<time datetime="{sale.begins_at}">{begins.strftime(f"{date}%H:%M")}</time>'
    last = f'<time datetime="{sale.ends_at}">{ends.strftime(until)}</time>'
    zone_name = text(language, "zone_of_china") if sale.timezone in _CHINA else html.escape(sale.timezone)
    return text(language, "from_to", **{"from": first, "to": last, "zone": zone_name})


def _zone(name: str) -> tzinfo:
    try:
        return zone_of(name)
    except BadRecurrence:  # a zone that another machine knew when the sale was announced
        return UTC


def _picture(sale: Sale, prefix: str) -> str:
    for image in sale.images[:1]:
        address = html.escape(prefix + image if image.startswith("/") else image)
        return f'<img class="cover photo" src="{address}" alt="" referrerpolicy="no-referrer">'
    return cover(sale.title)


def cover(title: str) -> str:
    """As cover.js."""
    hashed = 2166136261
    for char in title.strip().lower():
        hashed = ((hashed ^ ord(char)) * 16777619) & 0xFFFFFFFF
    x, y = _PLACES[(hashed >> 16) % len(_PLACES)]
    initial = next((char for char in title if char.isalnum()), "").upper()
    return (
        f'<svg class="cover p{(hashed >> 8) % _PALETTES}" viewBox="0 0 320 180" preserveAspectRatio="xMidYMid slice" '
        f'aria-hidden="true"><rect class="c0" width="320" height="180"/><circle class="c1" cx="{x}" cy="{y}" r="132"/>'
        f'<circle class="c2" cx="{x}" cy="{y}" r="72"/>'
        f'<text class="c3" x="160" y="90">{html.escape(initial)}</text></svg>'
    )


def _length(title: str) -> str:
    width = len(title) + len(_WIDE.findall(title))
    return "long very-long" if width > _VERY_LONG_TITLE else "long" if width > _LONG_TITLE else ""


def language_tag(view: FirstView) -> str:
    return tag_of(view.language)
