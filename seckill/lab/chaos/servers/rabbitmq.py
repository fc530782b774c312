"""Our own RabbitMQ: Debian's, or what `scripts/get-servers` has fetched."""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from seckill.errors import StartError
from seckill.lab.chaos.servers.server import Can, signal_all
from seckill.lab.servers.ports import free_port
from seckill.lab.servers.proxy import Address
from seckill.local.tether import tethered

START_WITHIN_S = 120.0
POLL_S = 0.1
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


def find_rabbitmq() -> Path | None:
    """Finds the folder with the server's scripts. Those in the PATH insist on another user."""
    found = [Path("/usr/lib/rabbitmq/bin"), Path(sys.prefix) / "servers" / "rabbitmq" / "bin"]
    return next((path for path in found if (path / "rabbitmq-server").exists()), None)


class RabbitServer:
    """A broker with its own ports and folder. It can be killed and started again and keeps its data."""

    can = frozenset({Can.KILL, Can.PAUSE, Can.PROXY})

    def __init__(self, folder: Path) -> None:
        programs = find_rabbitmq()
        if programs is None:
            raise StartError("RabbitMQ is not installed: install it, or run scripts/get-servers.")
        self.folder: Path | None = folder
        self._folder = folder
        self._port = free_port()
        self._node = f"sk{secrets.token_hex(4)}@localhost"
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._names: subprocess.Popen[bytes] | None = None
        (folder / "home").mkdir()
        (folder / "plugins").write_text("[].\n")
        (folder / "env.conf").write_text("")
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self._port}\n")
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
            "RUNNING_UNDER_SYSTEMD": "1",  # the Erlang machine replaces the script's process, and so dies with us, too
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    @property
    def name(self) -> str:
        return "RabbitMQ"

    @property
    def url(self) -> str:
        return self.url_of()

    def url_of(self, user: str = "guest", password: str = "guest", vhost: str = "/") -> str:  # noqa: S107 (its default)
        return f"amqp://{user}:{password}@127.0.0.1:{self._port}/{vhost.replace('/', '%2F')}"

    @property
    def address(self) -> Address:
        return "127.0.0.1", self._port

    def url_through(self, port: int) -> str:
        return self.url.replace(f":{self._port}/", f":{port}/")

    async def start(self) -> None:
        self.spawn()
        give_up_at_s = time.monotonic() + START_WITHIN_S
        while not await asyncio.to_thread(self.answers):
            if not self.pids() or time.monotonic() > give_up_at_s:
                raise StartError(f"RabbitMQ did not start: {self.last_words()}")
            await asyncio.sleep(POLL_S)

    def spawn(self) -> None:
        """Starts the broker and does not wait. Call it from the main thread: the broker dies with the thread that
        starts it."""
        with (self._folder / "out").open("ab") as out:
            if self._names is None:  # Erlang's name server; a node that finds none starts one, which then runs for ever
                epmd = self._programs / "epmd"
                self._names = self._run(out, str(epmd) if epmd.exists() else "epmd", "-address", "127.0.0.1")
            self._process = self._run(out, str(self._programs / "rabbitmq-server"))

    def last_words(self) -> str:
        return (self._folder / "out").read_text(errors="replace")[-500:]

    def _run(self, out: IO[bytes], *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 (found by `find_rabbitmq`)
            tethered(command),
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1) as probe:
                probe.settimeout(2)
                probe.sendall(PROTOCOL_HEADER)
                return bool(probe.recv(8))
        except OSError:
            return False

    def pids(self) -> list[int]:
        return [self._process.pid] if self._process is not None and self._process.poll() is None else []

    async def kill(self) -> None:
        await asyncio.to_thread(self.kill_now)

    def kill_now(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        signal_all(self.pids(), signal.SIGSTOP)

    def resume(self) -> None:
        signal_all(self.pids(), signal.SIGCONT)

    def control(self, *command: str) -> str:
        done = subprocess.run(  # noqa: S603 (found by `find_rabbitmq`)
            [str(self._programs / "rabbitmqctl"), "-q", "-n", self._node, *command],
            env=self._environ,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    async def stop(self) -> None:
        await asyncio.to_thread(self.stop_now)

    def stop_now(self) -> None:
        for process in (self._process, self._names):
            if process is not None:
                process.kill()
                process.wait()
