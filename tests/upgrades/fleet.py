"""Roles of several versions on the same servers, each a process of its own."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from seckill.lab.servers.ports import free_port
from seckill.local.tether import tethered
from seckill.settings import Secret
from seckill.web.buyers.buyer_tokens import mint_buyer_token
from tests.patience import PATIENCE_S

JWT_SECRET = Secret(secrets.token_urlsafe(48))  # roles on their own take no secret that can be guessed
ADMIN_KEY = secrets.token_urlsafe(24)
OPERATOR = {"Authorization": f"Bearer {ADMIN_KEY}"}
# A flaw is planted before anything is loaded; then it starts as `python -m seckill` does.
FLAWED = "{flaw}\nimport runpy, sys\nsys.argv[0] = 'seckill'\nrunpy.run_module('seckill', run_name='__main__')"


def buyer(user: str, key: str | None = None) -> dict[str, str]:
    token = mint_buyer_token(JWT_SECRET, user, lifetime_s=3600, issuer=None, audience=None, now=time.time())
    return {"Authorization": f"Bearer {token}"} | ({} if key is None else {"Idempotency-Key": key})


@dataclass(frozen=True)
class Release:
    """A code base: `place` is what stands on PYTHONPATH. `flaw`: Python that spoils it, for a control."""

    version: str
    place: Path
    flaw: str = ""

    def command(self, *arguments: str) -> list[str]:
        start = ["-c", FLAWED.format(flaw=self.flaw)] if self.flaw else ["-m", "seckill"]
        return [sys.executable, *start, *arguments]


@dataclass(eq=False)
class Process:
    role: str
    release: Release
    url: str
    log: Path
    popen: subprocess.Popen[bytes]

    def said(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass
class Fleet:
    """`serving`: the API nodes that a proxy would send buyers to. `changing`: those that are just being stopped."""

    folder: Path
    environ: Mapping[str, str]
    processes: list[Process] = field(default_factory=list)
    serving: list[str] = field(default_factory=list)
    changing: set[str] = field(default_factory=set)
    logs: list[Path] = field(default_factory=list)

    def environment(self, release: Release) -> dict[str, str]:
        """Keeps what Python compiles at the first start for the next ones, whatever the environment says."""
        left_out = ("SECKILL_", "PYTHONDONTWRITEBYTECODE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        return kept | dict(self.environ) | {"PYTHONPATH": str(release.place)}

    async def run(self, release: Release, *arguments: str) -> tuple[int, str]:
        """A command that ends: its exit code, and what it said."""
        running = await asyncio.create_subprocess_exec(
            *release.command(*arguments),
            env=self.environment(release),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await running.communicate()
        assert running.returncode is not None
        return running.returncode, said.decode(errors="replace")

    async def start(self, role: str, release: Release) -> Process:
        """Starts a role and waits until it works, as its own version says."""
        port = free_port()
        options = ["--host", "127.0.0.1", "--port", str(port)] if role == "api" else []
        log = self.folder / f"{len(self.logs)}-{role}-{release.version}.log"
        self.logs.append(log)
        with log.open("wb") as out:
            popen = subprocess.Popen(
                tethered(release.command(role, *options)),
                env=self.environment(release),
                cwd=self.folder,
                stdout=out,
                stderr=out,
            )
        process = Process(role, release, f"http://127.0.0.1:{port}" if role == "api" else "", log, popen)
        self.processes.append(process)
        # Workers and keepers are seen by any API node.
        async with (
            asyncio.timeout(PATIENCE_S),
            httpx2.AsyncClient(base_url=process.url or self.serving[0], verify=False, timeout=30) as http,
        ):
            while not await self._works(process, http):
                assert popen.poll() is None, process.said()[-2000:]
                await asyncio.sleep(0.1)
        if process.url:
            self.serving.append(process.url)
        return process

    async def _works(self, process: Process, http: httpx2.AsyncClient) -> bool:
        with contextlib.suppress(httpx2.HTTPError):
            if (await http.get("/readyz")).status_code != 200:
                return False
            if process.url:
                return bool((await http.get("/version")).json()["version"] == process.release.version)
            nodes = (await http.get("/v1/admin/live", headers=OPERATOR)).json()["nodes"]
            ours = (process.role, process.popen.pid, process.release.version)
            return ours in {(node["role"], node["pid"], node["version"]) for node in nodes}
        return False

    async def stop(self, process: Process) -> None:
        """Stops it as a service manager does: it is asked to stop, and finishes what it has begun."""
        self.changing.add(process.url)
        if process.url in self.serving:
            self.serving.remove(process.url)
        process.popen.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            while process.popen.poll() is None:
                await asyncio.sleep(0.02)
        assert process.popen.returncode == 0, process.said()[-2000:]
        self.processes.remove(process)

    def kill(self) -> None:
        for process in self.processes:
            process.popen.kill()
            process.popen.wait()

    def versions(self) -> set[str]:
        return {process.release.version for process in self.processes}

    def complaints(self) -> list[str]:
        """Everything that any process has called an error, and what is no event at all, such as a traceback. That
        something waits for long is only a sign of a machine that has much to do."""
        return [f"{log.name}: {line}" for log in self.logs for line in _lines(log) if _is_complaint(line)]


def _lines(log: Path) -> list[str]:
    """Returns the lines without the one that is just being written."""
    return log.read_text(errors="replace").split("\n")[:-1]


def _is_complaint(line: str) -> bool:
    if not line.startswith("{"):
        return True
    event = json.loads(line)
    return event["level"] in ("error", "critical") and event.get("invariant") != "progress"
