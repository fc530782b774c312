"""What came of a sale and what happened to it, as `seckill sale` prints it."""

import csv
import sys
from typing import Any

from rich.markup import escape

from seckill.cli.output import console, instant, table
from seckill.domain import money

_COLUMNS = ("accepted_units", "persisted_units", "available", "backlog", "system_p99_ms", "paid_units")


def print_summary(summary: dict[str, Any], *, repeats: bool) -> None:
    facts = table()
    for name, value in _summary_rows(summary, repeats=repeats):
        facts.add_row(f"[bold]{name}[/]", escape(value))
    console().print("\nWhat came of it:\n")
    console().print(facts)


def _summary_rows(summary: dict[str, Any], *, repeats: bool) -> list[tuple[str, str]]:
    way = summary["conversion"]
    rows = [
        ("sold", f"{summary['sold_units']} of {summary['units']}, {_percent(summary['sell_through'])}"),
        ("sold out", _sold_out(summary)),
        (
            "presses",
            f"{way['presses']}, of which {sum(way['refused'].values())} refused; who only looks is not counted",
        ),
        ("orders", f"{way['orders']}, {_percent(way['orders_per_press'])} of the presses"),
        ("paid", f"{way['paid_orders']}, {_percent(way['paid_per_order'])} of the orders"),
        ("lapsed", f"{summary['lapsed']}, {_percent(summary['lapse_rate'])} of the orders"),
        *(("money", _money(each)) for each in summary["money"]),
    ]
    if repeats:
        rows += [("money, all rounds", _money(each)) for each in summary["money_of_all_rounds"]]
    return rows


def _sold_out(summary: dict[str, Any]) -> str:
    if summary["sold_out_at"] is None:
        return "not so far"
    return f"{instant(summary['sold_out_at'])}, {summary['seconds_to_sell_out']:g} s after it began"


def _money(each: dict[str, Any]) -> str:
    taken, back, net = (money.shown(each[f"{name}_cents"], each["currency"]) for name in ("taken", "refunded", "net"))
    waits = each["refunding_cents"]
    on_the_way = f" ({money.shown(waits, each['currency'])} of it not made yet)" if waits else ""
    return f"{net} = {taken} taken - {back} refunded{on_the_way}"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"


def print_history(history: dict[str, Any]) -> None:
    listed = table("at", "round", "accepted", "persisted", "refused", "left", "backlog", "system p99", "paid")
    for point in history["points"]:
        accepted, persisted, left, backlog, p99, paid = (
            "" if point[name] is None else point[name] for name in _COLUMNS
        )
        refused = sum(point["refused"].values())
        shown = (accepted, persisted, refused, left, backlog, f"{p99} ms" if p99 != "" else "", paid)
        listed.add_row(instant(point["at"]), point["round"], *map(str, shown))
    nothing = "Nothing was kept of that time: the keeper keeps what happens while a sale is on."
    console().print(listed if history["points"] else nothing)


def write_csv(history: dict[str, Any]) -> None:
    reasons = sorted({reason for point in history["points"] for reason in point["refused"]})
    rows = [
        {name: value for name, value in point.items() if name != "refused"}
        | {f"refused_{reason}": point["refused"].get(reason, 0) for reason in reasons}
        for point in history["points"]
    ]
    lines = csv.DictWriter(sys.stdout, list(rows[0]) if rows else ["at"])
    lines.writeheader()
    lines.writerows(rows)


def print_timeline(entries: list[dict[str, Any]]) -> None:
    listed = table("when", "what", "who", "details")
    for each in entries:
        details = [f"{name}: {value}" for name, value in each["facts"].items()]
        changed = {**(each["before"] or {}), **(each["after"] or {})}
        details += [f"{name} changed" for name in changed if each["before"]]
        details += [each["why"]] if each["why"] else []
        listed.add_row(instant(each["at"]), each["kind"], escape(each["who"] or ""), escape("; ".join(details)))
    console().print(listed if entries else "Nothing has happened yet.")
