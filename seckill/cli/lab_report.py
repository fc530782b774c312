"""Hands over what a run of the laboratory has found: to a person or a program, and as a page with charts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from seckill.cli.output import console, print_json


def hand_over(
    found: dict[str, Any],
    show: Callable[[dict[str, Any]], None],
    report: Callable[[dict[str, Any]], str],
    page: Path | None,
    *,
    as_json: bool,
) -> None:
    """Writes the report to `page`, if there is to be one, even if the result goes to a program."""
    if page is not None:
        page.write_text(report(found), encoding="utf-8")
    if as_json:
        print_json(found)
        return
    show(found)
    if page is not None:
        console().print(f"\nThe report with charts is {page}")
