from django.contrib.auth.models import User
from django.core.management.base import BaseCommand

from bookshop import letters
from bookshop.models import Book

PEOPLE = ["staff", "ann", "bob"]
STOCK = 40
BOOKS = [
    ("sea", "The Grey Sea", "M. Lind", "A lighthouse keeper counts ships, and one night there is one too many.", 2400),
    ("maps", "Maps of Nowhere", "Q. Adeyemi", "Forty invented countries, drawn by hand, with their railways.", 3900),
    ("bread", "Bread in Ten Steps", "R. Okafor", "Flour, water, salt, time. The tenth step is eating it.", 1850),
]


class Command(BaseCommand):
    help = "Some people (their password is their name) and some books, if they are not there yet; the webhook."

    def handle(self, *_: object, **__: object) -> None:
        for name in PEOPLE:
            if not User.objects.filter(username=name).exists():
                make = User.objects.create_superuser if name == "staff" else User.objects.create_user
                make(name, password=name)
        for slug, title, author, text, price_cents in BOOKS:
            facts = {"title": title, "author": author, "text": text, "price_cents": price_cents, "stock": STOCK}
            Book.objects.get_or_create(pk=slug, defaults=facts)
        letters.register()
