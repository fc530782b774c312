"""`seckill up` as a user runs it: real processes, which tests may kill."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx2

from seckill.bootstrap.engine import Engine, open_engine
from seckill.lab.servers.ports import free_port
from seckill.local.data_folder import read_secrets
from seckill.local.tether import tethered
from seckill.local.valkey import EmbeddedValkey
from seckill.settings import Secret, Settings
from seckill.web.buyers.buyer_tokens import mint_buyer_token
from tests.patience import PATIENCE_S

ALARM = "the audit has found something broken"


class Stack:
    """Everything on one data folder. `start` and `kill` may be called again and again."""

    def __init__(
        self,
        folder: Path,
        *,
        api: int = 2,
        database_url: str = "",
        settings: Mapping[str, str] = {},
        open_files: int | None = None,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "up.log"
        self._api = api
        self._database_url = database_url
        self._settings = dict(settings)
        self._open_files = open_files  # files that each of its processes may open; None: as many as the system allows
        self._process: subprocess.Popen[bytes] | None = None
        self._secret: Secret | None = None
        self.clients: list[httpx2.AsyncClient] = []  # closed at the end, also when the test has failed

    async def start(self, **settings: str) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
        environ |= {"SECKILL_DATABASE_URL": self._database_url, **self._settings, **settings}
        command = [sys.executable, "-m", "seckill", "up", "--port", str(self.port), "--api", str(self._api)]
        command += ["--data", str(self.data)]
        if self._open_files is not None:
            command = ["bash", "-c", f'ulimit -n {self._open_files}; exec "$@"', "bash", *command]
        command = tethered(command)  # a test run that is killed leaves nothing behind
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True)
        await self.until_ready()

    async def until_ready(self, within_s: float = PATIENCE_S) -> None:
        deadline_s = time.monotonic() + within_s
        async with httpx2.AsyncClient() as http:
            while True:
                with contextlib.suppress(httpx2.HTTPError):
                    if (await http.get(f"{self.url}/readyz", timeout=30)).status_code == 200:
                        return
                assert self.process.poll() is None, f"seckill up ended: {self.log.read_text()[-2000:]}"
                assert time.monotonic() < deadline_s, f"not ready: {self.log.read_text()[-2000:]}"
                await asyncio.sleep(0.05)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def pids(self, role: str) -> list[int]:
        """The processes of a role: `api`, `worker`, `keeper` or `valkey`."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        found = []
        for pid in map(int, children):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                is_server = b"-server" in command[0]
                if (role == "valkey" and is_server) or (not is_server and role.encode() in command[:4]):
                    found.append(pid)
        return found

    def kill(self, role: str) -> bool:
        """Sends kill -9 to one process of the role. Returns False if there is none at this moment."""
        pids = self.pids(role)
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(pids), signal.SIGKILL)
        return bool(pids)

    def kill_everything(self) -> None:
        """kill -9 of the parent: all its children go with it."""
        self.process.kill()
        self.process.wait()

    def stop(self, within_s: float = PATIENCE_S) -> int:
        """Ctrl-C, and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(within_s)

    def logged(self, text: str) -> int:
        return self.log.read_text(errors="replace").count(text)

    def hits(self, windows: Iterable[str]) -> dict[str, int]:
        """Returns how often a process was killed in each of these windows."""
        return {name: self.logged(f"failpoint {name}: kill") for name in windows}

    def lines(self, text: str) -> list[str]:
        return [line for line in self.log.read_text(errors="replace").splitlines() if text in line]

    @property
    def settings(self) -> Settings:
        secrets = read_secrets(self.data)
        assert secrets is not None
        return Settings(
            redis_url=EmbeddedValkey(self.data, durability="strict").url,
            database_url=self._database_url or f"sqlite:///{self.data / 'ledger.db'}",
            jwt_secret=Secret(secrets.jwt_secret),
            admin_key=Secret(secrets.admin_key),
        )

    def engine(self) -> contextlib.AbstractAsyncContextManager[Engine]:
        return open_engine(self.settings)

    def token(self, user: str, lifetime_s: int = 3600) -> str:
        if self._secret is None:
            self._secret = self.settings.jwt_secret
        assert self._secret is not None
        return mint_buyer_token(self._secret, user, lifetime_s=lifetime_s, issuer=None, audience=None, now=time.time())

    async def create_sale(self, **facts: Any) -> dict[str, Any]:
        body = {
            "title": "Phone",
            "units": 100,
            "price_cents": 9900,
            "begins_at": "2020-01-01T00:00:00Z",
            "ends_at": "2100-01-01T00:00:00Z",
        }
        key = self.settings.admin_key
        assert key is not None
        async with httpx2.AsyncClient() as http:
            response = await http.post(
                f"{self.url}/v1/sales",
                json={name: value for name, value in (body | facts).items() if value is not None},
                headers={"Authorization": f"Bearer {key.reveal()}"},
                timeout=PATIENCE_S,
            )
        assert response.status_code == 201, response.text
        created: dict[str, Any] = json.loads(response.content)
        return created

    def metric(self, text: str, name: str) -> float:
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


@contextlib.asynccontextmanager
async def running(stack: Stack, **settings: str) -> AsyncIterator[Stack]:
    await stack.start(**settings)
    try:
        yield stack
        # Whatever was killed meanwhile, the keeper's audit has found nothing wrong. That something waits for long may
        # be what a test is about.
        wrong = [line for line in stack.lines(ALARM) if '"invariant": "progress"' not in line]
        assert not wrong, wrong
    finally:
        for client in stack.clients:
            await client.aclose()
        if stack.process.poll() is None:
            stack.process.terminate()
            try:
                stack.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                stack.kill_everything()
