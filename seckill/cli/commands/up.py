"""Everything on this machine with one command."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from seckill.backends.payment.provider_choice import open_provider
from seckill.cli.command_settings import environment, with_secrets
from seckill.cli.parameters import OptionalWhole
from seckill.errors import SettingsError, StartError
from seckill.local.data_folder import DataFolder
from seckill.operations.production_refusals import as_a_test
from seckill.settings import Settings, missing_for_payment

API_PROCESSES = 2
API_MAX = 64


def up(
    *,
    demo: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    host: str | None = None,
    port: OptionalWhole = None,
    data: Path | None = None,
    api: OptionalWhole = None,
) -> None:
    """Run everything on this machine: embedded servers unless URLs are set, API, worker and keeper.

    With `SECKILL_REDIS_URL=memory://` all of it is one process that needs no server and keeps nothing.

    Parameters
    ----------
    demo
        Create two sales to try things out, if there is none yet, and let anybody sign in under any name.
    host
        Address to listen on; 0.0.0.0 for all.
    port
        Port to listen on; 0 takes any free one.
    data
        Folder for data and secrets.
    api
        Number of API processes; 2 if it is not given.
    """
    if api is not None and not 1 <= api <= API_MAX:
        raise StartError(f"--api must be from 1 to {API_MAX}.")
    settings = environment(data=data, host=host, port=port)
    if settings.in_memory:
        _check_memory(settings, api)
    if demo:
        settings = replace(settings, demo_sign_in="on")
    if not os.environ.get("SECKILL_WEBHOOK_PRIVATE"):  # what is tried out on one machine has its receivers there
        settings = replace(settings, webhook_private="on")
    if missing := missing_for_payment(settings):
        raise SettingsError(missing)
    settings = as_a_test(settings, open_provider(settings))
    os.umask(0o077)  # no other user may read what we and our servers write
    with DataFolder.open(settings.data_dir) as folder:
        settings = with_secrets(replace(settings, data_dir=folder.path), folder.secrets())
        if settings.in_memory:
            from seckill.cli.up_in_memory import up_in_memory  # noqa: PLC0415 (every role, to be run in here)

            up_in_memory(settings, demo=demo)
        else:
            figures = _fresh(folder.path / "metrics")
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(figures)
            from seckill.cli.up_processes import up_processes  # noqa: PLC0415 (metrics read the line above when loaded)

            up_processes(settings, folder, figures, demo=demo, api=api or API_PROCESSES)


def _check_memory(settings: Settings, api: int | None) -> None:
    problems = [
        f"memory:// keeps nothing and needs no other server: leave {variable} empty."
        for variable, value in [
            ("SECKILL_DATABASE_URL", settings.database_url),
            ("SECKILL_BROKER_URL", settings.broker_url),
        ]
        if value
    ]
    if api not in (None, 1):
        problems.append("memory:// is the memory of one process: leave out --api.")
    if problems:
        raise SettingsError(problems)


def _fresh(folder: Path) -> Path:
    """Returns the folder emptied: figures of an earlier run would count twice."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
