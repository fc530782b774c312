"""For the people of the shop: flash sales are announced here, and orders refunded."""

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone

from bookshop.flash import seckill, set_aside
from bookshop.models import Book, FlashSale, Letter, Order
from bookshop.templatetags.shop import money
from bookshop.words import said, said_later
from seckill.client import ClientError


@admin.register(Book)
class BookAdmin(admin.ModelAdmin):
    list_display = ("title", "stock", "free")
    readonly_fields = ("stock",)  # a form that was opened a while ago would undo what was sold since


class FlashSaleForm(ModelForm):
    def clean(self) -> dict[str, Any]:
        wish: dict[str, Any] = super().clean()
        if {"book", "units"} <= wish.keys():
            # Until the sale is saved, in the same transaction, nobody else takes any.
            book = Book.objects.select_for_update().get(pk=wish["book"].pk)
            units, codes = wish["units"], len(self.instance.code_list)
            if units > book.free:
                raise ValidationError({"units": said("{count} are free.", count=book.free)})
            if 0 < codes < units:
                raise ValidationError({"codes": said("{codes} codes for {units} copies.", codes=codes, units=units)})
        return wish


@admin.register(FlashSale)
class FlashSaleAdmin(admin.ModelAdmin):
    form = FlashSaleForm
    list_display = ("book", "units", "set_aside", "price_cents", "begins_at", "ends_at", "sale_id")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        now = timezone.now()
        return {"units": 5, "begins_at": now, "ends_at": now + timedelta(hours=1)}

    def has_change_permission(self, request: HttpRequest, obj: FlashSale | None = None) -> bool:
        return False  # what is announced is changed in seckill's console

    def has_delete_permission(self, request: HttpRequest, obj: FlashSale | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: FlashSale, form: ModelForm, change: bool) -> None:
        set_aside(obj)


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ("id", "who", "book", "quantity", "price", "back", "state", "flash_sale", "at")
    list_filter = ("state", "book")
    actions = ("refund_and_sell_again", "refund_and_keep")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Order | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Order | None = None) -> bool:
        return False

    def who(self, order: Order) -> str:
        return str(order.user or order.buyer)

    def price(self, order: Order) -> str:
        return money(order.price_cents)

    def back(self, order: Order) -> str:
        return money(order.refunded_cents) if order.refunded_cents else ""

    @admin.action(description=said_later("Refund; the book goes back on sale"))
    def refund_and_sell_again(self, request: HttpRequest, chosen: QuerySet) -> None:
        self._refund(request, chosen, return_unit=True)

    @admin.action(description=said_later("Refund; the book does not come back"))
    def refund_and_keep(self, request: HttpRequest, chosen: QuerySet) -> None:
        self._refund(request, chosen, return_unit=False)

    def _refund(self, request: HttpRequest, chosen: QuerySet, *, return_unit: bool) -> None:
        reason = f"refunded in the shop by {request.user}"
        for order in chosen.exclude(flash_sale=None):
            try:  # all that is left of an order is refunded once: so its key is always the same
                seckill().refund_order(order.pk, reason=reason, return_unit=return_unit, key=f"refund-{order.pk}")
            except ClientError as error:
                self.message_user(request, f"{order.pk}: {error}", messages.ERROR)


@admin.register(Letter)
class LetterAdmin(admin.ModelAdmin):
    list_display = ("order_id", "text")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Letter | None = None) -> bool:
        return False
