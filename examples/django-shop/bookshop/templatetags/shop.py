from django import template

register = template.Library()


@register.filter
def money(cents: int) -> str:
    return f"{cents / 100:.2f} €"
