"""Webhooks, over the API."""

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import call
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, OptionalWhole, Url, Why
from seckill.client import requests

app = App(name="webhook", help="Create, list, show, change, test and delete webhooks; their deliveries and secrets.")

TEST_WITHIN_S = 20.0
WebhookId = Annotated[str, Parameter(help="The webhook's id, as `seckill webhook list` shows it.")]
DeliveryId = Annotated[str, Parameter(help="The delivery's id, as `seckill webhook deliveries` shows it.")]
Types = Annotated[
    list[str] | None,
    Parameter(
        name="--type", negative=(), help="Only events of this type; `order.*` stands for all that begin with it."
    ),
]
Sale = Annotated[str | None, Parameter(name="--sale", help="Only events of this sale.")]
Description = Annotated[str | None, Parameter(help="For people, in a line.")]
ANY = "all"


@app.command
def create(
    to: Annotated[str, Parameter(help="The address that events are sent to.")],
    *,
    types: Types = None,
    sale: Sale = None,
    description: Description = None,
    enabled: Annotated[bool, Parameter(help="Send to it from now on, or only once it is enabled.")] = True,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Send events to an address from now on. The webhook's secret is shown only this once."""
    wish = requests.create_webhook(to, types=types, sale_id=sale, description=description, enabled=enabled)
    _print(call(wish, url=url, why=reason), as_json)


@app.command(name="list")
def list_(*, as_json: AsJson = False, url: Url = None) -> None:
    """List all webhooks, and how each is doing."""
    found = call(requests.webhooks(), url=url)
    if as_json:
        print_json(found)
        return
    listed = table("id", "to", "events", "sale", "state", "behind", "waiting", "failed")
    for webhook in found["webhooks"]:
        listed.add_row(
            webhook["id"],
            escape(webhook["url"]),
            ", ".join(webhook["types"] or [ANY]),
            webhook["sale_id"] or ANY,
            _state(webhook),
            str(webhook["behind"]),
            str(webhook["waiting"]),
            str(webhook["failed"]),
        )
    console().print(listed if found["webhooks"] else "No webhooks.")


@app.command
def show(webhook_id: WebhookId, *, as_json: AsJson = False, url: Url = None) -> None:
    """Show a webhook."""
    _print(call(requests.webhook(webhook_id), url=url), as_json)


@app.command
def change(
    webhook_id: WebhookId,
    *,
    to: Annotated[str | None, Parameter(help="Another address.")] = None,
    types: Types = None,
    sale: Sale = None,
    description: Description = None,
    enabled: Annotated[
        bool | None, Parameter(help="Enable it, and send at once what waits for it; or disable it.")
    ] = None,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Change a webhook: only the fields that are given. `--type all` and `--sale all` remove a filter."""
    given = {"url": to, "types": types, "sale_id": sale, "description": description, "enabled": enabled}
    changes: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    if types == [ANY]:
        changes["types"] = None
    if sale == ANY:
        changes["sale_id"] = None
    _print(call(requests.change_webhook(webhook_id, **changes), url=url, why=reason), as_json)


@app.command
def delete(webhook_id: WebhookId, *, reason: Why = None, url: Url = None) -> None:
    """Delete a webhook: nothing more is sent to it, and its deliveries are forgotten."""
    call(requests.delete_webhook(webhook_id), url=url, why=reason)
    console().print(f"Webhook {escape(webhook_id)} is deleted.")


@app.command
def rotate(
    webhook_id: WebhookId,
    *,
    overlap_hours: Annotated[
        OptionalWhole, Parameter(help="Hours for which the previous secret signs as well, 0 to 168; 24 if not given.")
    ] = None,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Give a webhook a new secret, which is shown only this once."""
    _print(call(requests.rotate_webhook(webhook_id, overlap_hours), url=url, why=reason), as_json)


@app.command(name="test")
def send_test(webhook_id: WebhookId, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Send a `webhook.test` to a webhook, even a disabled one, and show its answer."""
    _print_delivery(call(requests.try_webhook(webhook_id, wait_s=TEST_WITHIN_S), url=url, why=reason), as_json)


@app.command
def deliveries(
    webhook_id: WebhookId,
    *,
    state: Literal["waiting", "delivered", "failed"] | None = None,
    limit: OptionalWhole = None,
    after: Annotated[str | None, Parameter(help="Go on after this delivery.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List deliveries that wait or were given up, and the last that were made, newest first.

    Parameters
    ----------
    state
        Only those.
    limit
        How many, 1 to 100; 20 if not given.
    """
    found = call(requests.webhook_deliveries(webhook_id, state=state, limit=limit, after=after), url=url)
    if as_json:
        print_json(found)
        return
    listed = table("id", "event", "type", "state", "answer", "tries", "last try", "next try")
    for delivery in found["deliveries"]:
        listed.add_row(
            delivery["id"],
            delivery["event_id"],
            delivery["type"],
            delivery["state"],
            _answer(delivery),
            str(delivery["tries"]),
            _instant(delivery["tried_at"]),
            _instant(delivery["next_try_at"]),
        )
    console().print(listed if found["deliveries"] else "No deliveries.")
    if found["next"] is not None:
        console().print(f"There are more: --after {found['next']}")


@app.command
def redeliver(
    webhook_id: WebhookId, delivery_id: DeliveryId, *, reason: Why = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Send a delivery again now, and show the answer."""
    again = requests.redeliver_webhook(webhook_id, delivery_id, wait_s=TEST_WITHIN_S)
    _print_delivery(call(again, url=url, why=reason), as_json)


def _state(webhook: dict[str, Any]) -> str:
    if not webhook["enabled"]:
        return f"disabled ({webhook['disabled_by']})"
    return f"failing since {instant(webhook['failing_since'])}" if webhook["failing_since"] else "ok"


def _print(webhook: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(webhook)
        return
    facts = table()
    for name in ("id", "url", "types", "sale_id", "description"):
        value = webhook[name]
        facts.add_row(f"[bold]{name}[/]", escape(_value(name, value)))
    facts.add_row("[bold]state[/]", _state(webhook))
    for name in ("created_at", "delivered_at", "next_try_at", "overlap_until"):
        facts.add_row(f"[bold]{name}[/]", _instant(webhook[name]))
    for name in ("behind", "waiting", "failed"):
        facts.add_row(f"[bold]{name}[/]", str(webhook[name]))
    if missed := webhook["missed"]:
        facts.add_row("[bold]missed[/]", f"the events after {missed['after']} up to {missed['until']} were pruned")
    if "secret" in webhook:
        facts.add_row("[bold]secret[/]", f"{webhook['secret']}  (shown this once)")
    console().print(facts)


def _value(name: str, value: list[str] | str | None) -> str:
    if name in ("types", "sale_id") and value is None:
        return ANY
    return ", ".join(value) if isinstance(value, list) else str(value)


def _print_delivery(delivery: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(delivery)
        return
    took = "" if delivery["took_ms"] is None else f" after {delivery['took_ms']} ms"
    console().print(f"Delivery {delivery['id']} ({delivery['type']}): {delivery['state']}, {_answer(delivery)}{took}.")


def _answer(delivery: dict[str, Any]) -> str:
    if delivery["status"] is not None:
        return f"HTTP {delivery['status']}"
    return str(delivery["trouble"] or "not tried yet")


def _instant(text: str | None) -> str:
    return "–" if text is None else instant(text)
