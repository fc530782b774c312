"""Operators' keys, over the API."""

from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import call
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, OptionalWhole, Url, Why
from seckill.client import access_requests as requests
from seckill.domain.operator import Role
from seckill.errors import SeckillError

app = App(name="operator", help="Create, list and revoke operators' keys.")

_DAY_S = 86_400


@app.command
def create(
    name: Annotated[str, Parameter(help="Whose key it is. The record names them beside each of their changes.")],
    *,
    role: Annotated[
        Role,
        Parameter(help="viewer: reads. operator: also sales, orders, lines, buyers. admin: also keys and webhooks."),
    ] = Role.VIEWER,
    days: Annotated[OptionalWhole, Parameter(help="Days until it expires; it never does, if not given.")] = None,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Make a key for an operator, shown only this once. The operator sets it as SECKILL_ADMIN_KEY, or enters it in the
    console."""
    wish = requests.create_operator(name, role, None if days is None else days * _DAY_S)
    made = call(wish, url=url, why=reason)
    if as_json:
        print_json(made)
        return
    facts = table()
    for field in ("id", "name", "role"):
        facts.add_row(f"[bold]{field}[/]", escape(made[field]))
    facts.add_row("[bold]expires_at[/]", _instant(made["expires_at"]))
    facts.add_row("[bold]key[/]", f"{made['key']}  (shown this once)")
    console().print(facts)


@app.command(name="list")
def list_(*, as_json: AsJson = False, url: Url = None) -> None:
    """List all keys, newest first. The admin key of the settings is not among them."""
    found = call(requests.operators(), url=url)
    if as_json:
        print_json(found)
        return
    listed = table("id", "name", "role", "state", "created", "by", "expires")
    for key in found["operators"]:
        listed.add_row(
            key["id"],
            escape(key["name"]),
            key["role"],
            key["state"],
            instant(key["created_at"]),
            escape(key["created_by"]),
            _instant(key["expires_at"]),
        )
    console().print(listed if found["operators"] else "No keys but the admin key of the settings.")


@app.command
def revoke(
    who: Annotated[str, Parameter(help="A key's id, or a name: then all keys of that name.")],
    *,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Revoke keys: within seconds they no longer open anything."""
    known = call(requests.operators(), url=url)["operators"]
    wanted = [key for key in known if who in (key["id"], key["name"]) and key["revoked_at"] is None]
    if not wanted:
        raise SeckillError(f"There is no key of {who} that could be revoked: `seckill operator list` shows them.")
    revoked: list[dict[str, Any]] = [call(requests.revoke_operator(key["id"]), url=url, why=reason) for key in wanted]
    if as_json:
        print_json({"operators": revoked})
        return
    for key in revoked:
        console().print(f"Key {key['id']} of {escape(key['name'])} ({key['role']}) is revoked.")


def _instant(text: str | None) -> str:
    return "never" if text is None else instant(text)
