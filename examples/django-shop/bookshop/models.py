"""The shop's own books, in both senses."""

import uuid
from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Sum
from django.utils import timezone


class Book(models.Model):
    slug = models.SlugField(primary_key=True)
    title = models.CharField(max_length=100)
    author = models.CharField(max_length=100)
    text = models.TextField()
    price_cents = models.PositiveIntegerField()
    stock = models.PositiveIntegerField()  # in the warehouse, and not sold

    def __str__(self) -> str:
        return str(self.title)

    @property
    def free(self) -> int:
        """What is not set aside for a flash sale. A unit that is, is never sold from the shelf."""
        set_aside = self.flashsale_set.filter(is_settled=False).aggregate(units=Sum("set_aside"))["units"]
        return int(self.stock - (set_aside or 0))

    @property
    def flash_sale(self) -> Any:
        """The one that is on, or the next."""
        announced = self.flashsale_set.exclude(sale_id=None).filter(ends_at__gt=timezone.now())
        return announced.order_by("begins_at").first()


class FlashSale(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)  # seckill has it as `external_id`
    sale_id = models.CharField(max_length=32, null=True, unique=True, editable=False)  # seckill's, once it is announced
    book = models.ForeignKey(Book, models.PROTECT)
    units = models.PositiveIntegerField()
    price_cents = models.PositiveIntegerField()
    begins_at = models.DateTimeField(default=timezone.now)
    ends_at = models.DateTimeField()
    codes = models.TextField(
        blank=True,
        help_text="For the audio book, one on each line: every copy comes with one. "
        "A few more than copies, so that a returned copy can be sold with another. Empty: without codes.",
    )  # only until the sale is announced: from then on seckill has them, and gives each out once
    set_aside = models.PositiveIntegerField(editable=False)  # of the book's stock, for nobody but this sale
    is_settled = models.BooleanField(default=False, editable=False)  # nothing more can happen to it

    def __str__(self) -> str:
        return f"{self.book} from {self.begins_at:%d %b %H:%M}"

    @property
    def code_list(self) -> list[str]:
        return [line.strip() for line in self.codes.splitlines() if line.strip()]

    def take_back(self, units: int) -> None:
        """Units come back (or, if less than 0, are sold). They are still set aside for this sale."""
        Book.objects.filter(pk=self.book_id).update(stock=F("stock") + units)
        FlashSale.objects.filter(pk=self.pk).update(set_aside=F("set_aside") + units)


class Order(models.Model):
    id = models.CharField(primary_key=True, max_length=64)
    buyer = models.CharField(max_length=128, db_index=True)  # the user's id, as the shop has signed it for seckill
    book = models.ForeignKey(Book, models.PROTECT)
    flash_sale = models.ForeignKey(FlashSale, models.PROTECT, null=True)  # none: bought from the shelf
    quantity = models.PositiveIntegerField()
    price_cents = models.PositiveIntegerField()
    state = models.CharField(max_length=16)
    held = models.PositiveIntegerField()  # units that are not in the stock any more because of it
    at = models.DateTimeField()

    class Meta:
        ordering = ("-at",)

    def __str__(self) -> str:
        return str(self.id)

    @property
    def user(self) -> User | None:
        return User.objects.filter(pk=self.buyer).first() if self.buyer.isdecimal() else None

    @property
    def refunded_cents(self) -> int:
        return int(self.refund_set.aggregate(cents=Sum("amount_cents"))["cents"] or 0)


class Refund(models.Model):
    id = models.CharField(primary_key=True, max_length=32)  # seckill's `refund_id`
    order = models.ForeignKey(Order, models.PROTECT)
    amount_cents = models.PositiveIntegerField()


class Letter(models.Model):
    webhook_id = models.CharField(primary_key=True, max_length=64)  # so that nobody gets the same letter twice
    order_id = models.CharField(max_length=64)
    text = models.TextField()

    def __str__(self) -> str:
        return str(self.text)


class Note(models.Model):
    """A line each: the cursor in seckill's feed, and the secret of the webhook."""

    name = models.CharField(primary_key=True, max_length=32)
    value = models.CharField(max_length=200)
