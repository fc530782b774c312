"""What everybody sees. The flash sale is drawn by the shop, which asks seckill: the browser never does."""

import secrets

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from bookshop.flash import as_buyer, sale_now
from bookshop.models import Book, Order

CLAIM_WITHIN_S = 10


def all_books(request: HttpRequest) -> HttpResponse:
    return render(request, "books.html", {"books": Book.objects.order_by("title")})


def book_page(request: HttpRequest, slug: str) -> HttpResponse:
    book = get_object_or_404(Book, pk=slug)
    flash_sale = book.flash_sale
    sale = None if flash_sale is None else sale_now(flash_sale.sale_id)
    return render(request, "book.html", {"book": book, "sale": sale, "key": secrets.token_urlsafe()})


@require_POST
@login_required
def claim(request: HttpRequest, slug: str) -> HttpResponse:
    """Buys in the flash sale. The key was made with the page: pressed twice, or repeated, it is one order."""
    flash_sale = get_object_or_404(Book, pk=slug).flash_sale
    if flash_sale is None:
        return redirect("book", slug)
    claimed = as_buyer(request.user).claim(flash_sale.sale_id, key=request.POST["key"], wait_s=CLAIM_WITHIN_S)
    return redirect("order", claimed.order_id)


@login_required
def order_page(request: HttpRequest, order_id: str) -> HttpResponse:
    """As seckill has it now; another's order is not found."""
    return render(request, "order.html", {"order": as_buyer(request.user).order(order_id)})


@require_POST
@login_required
def pay(request: HttpRequest, order_id: str) -> HttpResponse:
    """In the sandbox it is paid at once, and no money moves; a real provider has a page of its own to pay on."""
    order = as_buyer(request.user).pay(order_id)
    if order.pay_qr:  # for an app, which scans it
        return render(request, "order.html", {"order": order})
    return redirect(order.pay_url) if order.pay_url else redirect("order", order_id)


@require_POST
@login_required
def cancel(request: HttpRequest, order_id: str) -> HttpResponse:
    as_buyer(request.user).cancel(order_id)
    return redirect("order", order_id)


@require_POST
@login_required
def buy(request: HttpRequest, slug: str) -> HttpResponse:
    """From the shelf, at the usual price, without seckill."""
    with transaction.atomic():
        book = get_object_or_404(Book.objects.select_for_update(), pk=slug)
        order_id = f"shelf-{request.POST['key']}"[:64]
        if not Order.objects.filter(pk=order_id).exists():
            if book.free < 1:
                return render(request, "no.html", {"says": "The last one has just been sold."}, status=409)
            book.stock -= 1
            book.save()
            facts = {
                "buyer": str(request.user.pk),
                "book": book,
                "quantity": 1,
                "held": 1,
                "price_cents": book.price_cents,
            }
            Order.objects.create(id=order_id, state="paid", at=timezone.now(), **facts)
    return redirect("orders")


@login_required
def my_orders(request: HttpRequest) -> HttpResponse:
    """As the shop knows them: those of flash sales come with seckill's events."""
    return render(
        request, "orders.html", {"orders": Order.objects.filter(buyer=request.user.pk).select_related("book")}
    )
