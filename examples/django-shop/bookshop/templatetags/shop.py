from django import template

from bookshop.words import said

register = template.Library()
register.simple_tag(said, name="t")


@register.filter
def money(cents: int) -> str:
    return f"{cents / 100:.2f} €"
