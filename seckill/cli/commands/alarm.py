"""Lists alarms, and tries out whether they reach anyone."""

import asyncio
import json
import socket
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import call
from seckill.cli.command_settings import environment
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, OptionalWhole, Url
from seckill.client import figure_requests as requests
from seckill.engine.alarms.alarm import key_of, message
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.alarms.delivery import send
from seckill.errors import SeckillError

app = App(name="alarm", help="List alarms, and send a test alarm.")

Now = Annotated[bool, Parameter(negative=(), help="Only those that last now.")]


@app.command(name="list")
def list_(
    *,
    now: Now = False,
    sale: Annotated[str | None, Parameter(help="Only of this sale.")] = None,
    limit: OptionalWhole = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List alarms, newest first, each with the row of the runbook that says what to do.

    Parameters
    ----------
    limit
        How many, 1 to 500; 20 if not given.
    """
    found = call(requests.alarms(on=now, sale_id=sale, limit=limit), url=url)
    if as_json:
        print_json(found)
        return
    listed = table("since", "over", "alarm", "what to do")
    for each in found["alarms"]:
        over = "lasts" if each["on"] else "" if each["resolved_at"] is None else instant(each["resolved_at"])
        listed.add_row(instant(each["raised_at"]), over, escape(each["what"]), each["runbook"] or "")
    console().print(listed if found["alarms"] else "No alarms.")


@app.command(name="test")
def try_out(*, as_json: AsJson = False) -> None:
    """Send one alarm to SECKILL_ALARM_URL, now and once, and say whether it arrived. Run it where a keeper runs, with
    its settings. Exit code 1 if it did not."""
    address = environment().alarm_url
    if not address:
        raise SeckillError("SECKILL_ALARM_URL is not set here, so alarms are only in the log and in the console.")
    facts = {"test": True, "host": socket.gethostname()}
    said = message("alarm", AlarmCause.TEST, key_of(AlarmCause.TEST, facts), facts)
    failure = asyncio.run(send(address, json.dumps(said).encode()))
    where = urlsplit(address).hostname  # the rest of it may be a secret
    if as_json:
        print_json({"taken": failure is None, "host": where, "reason": failure, "message": said})
    if failure is not None:
        raise SeckillError(f"{where} did not accept the alarm ({failure}): mend it, or SECKILL_ALARM_URL.")
    if not as_json:
        console().print(
            f"{where} has accepted the alarm. Look at your pager to see whether it rings: “{AlarmCause.TEST}”."
        )
