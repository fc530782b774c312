"""The items of a sale: checks what an operator says, and shows them as everyone sees them."""

from collections.abc import Sequence

from msgspec import UNSET

from seckill.domain import item as domain
from seckill.domain.money import WORTH_CENTS_MAX
from seckill.domain.sale import UNITS_MAX, Sale
from seckill.web import schemas
from seckill.web.context import Context
from seckill.web.problems import HttpProblem, invalid
from seckill.web.sales.goods import check_external_id, check_image
from seckill.web.sales.item_ids import ItemIds


def item_drafts(new: schemas.NewSale, image_hosts: Sequence[str]) -> tuple[domain.ItemDraft, ...]:
    """Checked, each with its price."""
    drafts = tuple(
        domain.ItemDraft(
            title=item.title,
            units=item.units,
            price_cents=price_of(new) if item.price_cents is UNSET else item.price_cents,
            external_id=item.external_id,
            image=item.image,
        )
        for item in new.items
    )
    for place, item in enumerate(drafts):
        _check(f"items[{place}]", item.title, item.external_id, item.image, image_hosts)
    _check_distinct([item.external_id for item in drafts])
    priced = [item.price_cents is not UNSET for item in new.items]
    if new.price_cents is UNSET and any(priced) and not all(priced):
        raise invalid(f"items[{priced.index(False)}].price_cents", "is missing, and others have one: 0 if it is free")
    if new.price_cents is not UNSET and new.items and all(priced):
        raise invalid("price_cents", "every item has a price of its own: leave it out")
    return drafts


def price_of(new: schemas.NewSale) -> int:
    """Returns the price of a unit for items without a price of their own."""
    return 0 if new.price_cents is UNSET else new.price_cents


def check_worth(price_cents: int, units: int, items: Sequence[domain.ItemDraft]) -> None:
    worth = sum(item.price_cents * item.units for item in items) if items else price_cents * units
    if worth > WORTH_CENTS_MAX:
        field = "items" if items else "price_cents"
        raise invalid(field, f"all units must cost at most {WORTH_CENTS_MAX} together, not {worth}: announce fewer")


def units_of(new: schemas.NewSale, items: Sequence[domain.ItemDraft]) -> int:
    if not items:
        if new.units is UNSET:
            raise invalid("units", "is missing: say how many there are, or which items")
        return new.units
    together = sum(item.units for item in items)
    if together > UNITS_MAX:
        raise invalid("items", f"together they must have at most {UNITS_MAX} units")
    if new.units is not UNSET and new.units != together:
        raise invalid("units", f"the items have {together} units together: leave it out, or say the same")
    return together


def item_changes(
    ctx: Context, patch: schemas.SalePatch, sale: Sale, image_hosts: Sequence[str]
) -> tuple[domain.ItemChange, ...]:
    changes = []
    for place, item in enumerate(patch.items or ()):
        number = ctx.item_ids.number(item.item_id)
        if number is None or sale.item(number) is None:
            raise unknown_item(f"items[{place}].item_id")
        external_id = None if item.external_id is UNSET else item.external_id or ""
        image = None if item.image is UNSET else item.image or ""
        _check(f"items[{place}]", item.title or "", external_id or None, image or None, image_hosts)
        changes.append(
            domain.ItemChange(
                id=number, add_units=item.add_units or 0, title=item.title, external_id=external_id, image=image
            )
        )
    if len({change.id for change in changes}) < len(changes):
        raise invalid("items", "an item is named twice")
    return tuple(changes)


def item_meant(item_ids: ItemIds, sale: Sale, item_id: str | None) -> int:
    """Returns the item that a claim or an entry of a line means."""
    if not sale.items:
        if item_id is not None:
            raise invalid("item_id", "this sale has no items: leave it out")
        return domain.NO_ITEM
    if item_id is None:
        raise invalid("item_id", "is missing: this sale has items, and a claim names one of them")
    number = item_ids.number(item_id)
    if number is None or sale.item(number) is None:
        raise unknown_item("item_id")
    return number


def unknown_item(field: str) -> HttpProblem:
    return invalid(field, "unknown item: this sale has no such item")


def _check(field: str, title: str, external_id: str | None, image: str | None, image_hosts: Sequence[str]) -> None:
    if not title.isprintable():
        raise invalid(f"{field}.title", "must be one line of text")
    if external_id is not None:
        check_external_id(f"{field}.external_id", external_id)
    if image is not None:
        check_image(f"{field}.image", image, image_hosts)


def _check_distinct(external_ids: Sequence[str | None]) -> None:
    seen: set[str] = set()
    for place, external_id in enumerate(external_ids):
        if external_id in seen:
            raise invalid(f"items[{place}].external_id", "another item of this sale has the same")
        seen |= set() if external_id is None else {external_id}


def item_views(ctx: Context, sale: Sale, *, to_operator: bool) -> list[schemas.Item]:
    units = dict(sale.round.items)
    pulse = ctx.sale_cache.pulse(sale.round.id)
    left = {} if pulse is None else pulse.items
    return [
        schemas.Item(
            item_id=ctx.item_ids.of(item.id),
            title=item.title,
            units=units.get(item.id, item.units),
            price_cents=item.price_cents,
            image=item.image,
            sold_out=left.get(item.id) == 0,
            external_id=item.external_id if to_operator else UNSET,
        )
        for item in sale.items
    ]
