"""One run: the stores, the processes, the weather, and the checks that look on."""

import asyncio
import contextvars
import copy
import hashlib
import json
import math
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from seckill.backends.memory.store import Contents, MemoryStore, Way
from seckill.domain.public_id import PublicIds
from seckill.domain.sale import Sale, SaleDraft
from tests.simulation.checks import Broken, Checks, numbers_in
from tests.simulation.database import DatabaseFile, simulated_history, simulated_ledger
from tests.simulation.line_checks import LineChecks
from tests.simulation.loop import VirtualLoop
from tests.simulation.processes import Process
from tests.simulation.replicas import Replicated
from tests.simulation.roles import KEY, LANES, ApiNode, KeeperRole, Role, WorkerRole
from tests.simulation.weather import STORM_S, Weather

# A moment in 2030, which cannot be taken for the machine's own time; in the middle of the storm a minute begins, and
# with it the next round of a sale that repeats.
BEGIN_MS = 1_900_000_018_500
NEXT_MINUTE_MS = BEGIN_MS + 1500
CALM_LAG_S = 0.002
TRACE_KEPT = 4000
ROLES: dict[str, type[Role]] = {"a": ApiNode, "w": WorkerRole, "k": KeeperRole}


class World:
    def __init__(self, loop: VirtualLoop, chance: Random, weather: Weather, folder: Path) -> None:
        self.loop = loop
        self.chance = chance
        self.weather = weather
        self.storm = True
        self.over = False
        self._gate_back_s = 0.0
        self.broken: asyncio.Future[None] = loop.create_future()
        self.counts: Counter[str] = Counter()
        self.trace: deque[str] = deque(maxlen=TRACE_KEPT)
        self.digest = hashlib.blake2b(digest_size=16)
        self.refunded: dict[int, int] = {}
        self.store = MemoryStore(self.now_ms, together=True)
        self.strict = weather.replica == "strict"
        self.server = None
        if weather.replica is not None:
            self.server = Replicated(self.store, self._look_at_gate, self.later, self._copy_delay)
        self.file = DatabaseFile(folder, self)
        self.ledger = simulated_ledger()
        self.ledger.tasks.clear()
        self.history = simulated_history()
        self.history.tasks.clear()
        # Another database, with the numbers of the one before: what a process remembers of that is of no use here.
        self.ledger._recording._gifts._last_upload.clear()
        self.checks = Checks(self.store, self.file.reader())
        self.lines = LineChecks(self.checks, self.store, self.file.reader(), PublicIds(KEY, "entry"))
        self.processes: list[Process] = []
        self.roles: dict[str, Role] = {}
        self._payloads: list[tuple[int, bytes]] = []
        self._outside = contextvars.copy_context()

    # Time

    def now_s(self) -> float:
        return self.loop.time()

    def now_ms(self) -> int:
        return BEGIN_MS + int(self.loop.time() * 1000)

    def db_now_ms(self) -> int:
        return self.now_ms() + self.weather.clocks_differ_ms

    def later(self, after_s: float, what: Callable[..., object], *args: Any) -> None:
        """Calls it later, but not in the name of the process that happens to run."""
        self.loop.call_later(after_s, what, *args, context=self._outside)

    # Processes

    def start(self, name: str) -> None:
        if self.over:
            return
        self.counts["starts"] += 1
        process = Process(f"{name}.{self.counts[name]}", self.file)
        self.counts[name] += 1
        self.processes.append(process)
        kind = ROLES[name[0]]
        role = process.start_in(lambda: kind(self, process))
        self.roles[name] = role
        process.start(role.run()).add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not self.over:
            self.break_(f"a process has ended by itself: {task!r}")

    def kill(self, process: Process) -> None:
        self.note("kill", process.name)
        self.counts["kills"] += 1
        process.kill()
        # The next one begins where this one ended: with nothing but the stores.
        self.later(self.chance.uniform(0.05, 1.0), self.start, process.name.split(".")[0])

    def halt(self, process: Process) -> None:
        self.note("stop", process.name)
        self.counts["stops"] += 1
        process.stop()
        self.later(self.chance.uniform(0.1, 2.5), self.go_on, process)

    def go_on(self, process: Process) -> None:
        if not process.is_dead:
            self.note("go on", process.name)
            self.loop.put_back(process.go_on())

    def nodes(self) -> list[ApiNode]:
        return [role for role in self.roles.values() if isinstance(role, ApiNode)]

    # The ways to a store

    async def to_store(self, process: Process, what: str, way: Way) -> None:
        if way is Way.BACK and self.server is None:
            self._look_at_gate()
        elif way is Way.BACK and self.server is not None:
            self.server.wrote()
        await self._cross(process, what, way, self.weather.gate_away)
        if self.now_s() < self._gate_back_s and what != "provider":
            raise ConnectionError("going back")

    async def to_database(self, process: Process, what: str, way: Way) -> None:
        await self._cross(process, what, way, self.weather.database_away)

    def did(self, process: Process, what: str) -> None:
        self.note(process.name, what[:60])

    async def _cross(self, process: Process, what: str, way: Way, away: Any) -> None:
        if self.over:
            raise ConnectionError("it is over")
        self.note(process.name, what, way)
        if not self.storm:
            await asyncio.sleep(self.chance.random() * CALM_LAG_S)
            return
        weather = self.weather
        drawn = self.chance.random()
        if drawn < weather.kill:
            self.kill(process)
            await self.loop.create_future()
        drawn -= weather.kill
        if 0 <= drawn < weather.stop:
            self.halt(process)
        await asyncio.sleep(self._delay())
        cut = weather.cut_there if way is Way.THERE else weather.cut_back
        if (away is not None and away.covers(self.now_s())) or self.chance.random() < cut:
            self.counts["cuts"] += 1
            self.note("cut", process.name)
            raise ConnectionError("cut")

    def _delay(self) -> float:
        stalls = self.chance.random() < self.weather.stall
        return self.chance.random() * (self.weather.stall_s if stalls else self.weather.lag_s)

    # The gate's own troubles

    def arrange(self) -> None:
        weather = self.weather
        if weather.gate_empties_s is not None:
            self.later(weather.gate_empties_s, self._lose, Contents)
        if weather.gate_goes_back_s is not None:
            then_s, now_s = weather.gate_goes_back_s
            self.later(max(0.0, then_s), self._remember, now_s - then_s)
        if self.server is not None:
            for moment_s in weather.fails_over_s:
                self.later(moment_s, self._fail_over)
        for _ in range(weather.doubles):
            self.later(self.chance.uniform(0.5, STORM_S), self._deliver_again)
        for _ in range(weather.poison):
            self.later(self.chance.uniform(0.5, STORM_S), self._poison)

    def _remember(self, for_s: float) -> None:
        then = copy.deepcopy(self.store.contents)
        self.later(for_s, self._go_back, then)

    def _go_back(self, then: Contents) -> None:
        """It answers again in the next second: in this one, it would give out numbers that it has given out before."""
        self._lose(lambda: then)
        self._gate_back_s = math.floor(self.now_s()) + 1.0

    def _copy_delay(self) -> float:
        silent = self.weather.replica_silent
        lag_s = self.chance.random() * (self.weather.replica_lag_s if self.storm else CALM_LAG_S)
        if self.storm and silent is not None and silent.covers(self.now_s()):
            lag_s += silent.ends_s - self.now_s()
        return lag_s

    def _fail_over(self) -> None:
        """The primary is gone, with whatever the replica does not have. With `strict`, no buyer was told of that."""
        assert self.server is not None
        if not self.server.can_fail_over():
            return
        self._look_at_gate()
        with self.checks.losing(self.now_s(), declared=not self.strict):
            self.store.contents = self.server.fail_over()
        # No worker was given what went with the primary, or it would be somewhere: it is not delivered once more.
        left = self.checks.are_somewhere(payload for _, payload in self._payloads)
        self._payloads = [known for known in self._payloads if known[1] in left]
        self.counts["failovers"] += 1
        self.note("gate", f"is {self.server.name}, wounded {sorted(ref.id for ref in self.checks.wounded)}")
        self.check(self.checks.after_loss)

    def _lose(self, contents: Callable[[], Contents]) -> None:
        self._look_at_gate()
        with self.checks.losing(self.now_s()):
            self.store.contents = contents()
        if self.server is not None and not self.store.contents.rounds:
            self.server.lose()
        self.counts["losses"] += 1
        self.note("gate", f"forgets, wounded {sorted(ref.id for ref in self.checks.wounded)}")

    def _deliver_again(self) -> None:
        if self._payloads:
            lane, payload = self.chance.choice(self._payloads)
            self.store.add_shared(lane, payload, len(numbers_in(payload)) or 1)
            self.counts["doubles"] += 1

    def _poison(self) -> None:
        """Adds an entry of a round that exists for an order that does not, or one that cannot even be read."""
        lane = self.chance.randrange(LANES)
        number = {"seconds": BEGIN_MS // 1000 - 1_577_836_800, "counter": (1 << 24) - 1 - self.counts["poison"]}
        entry = {"v": 2, "round": 1, "epoch": 1, "lane": lane, "at_ms": BEGIN_MS, "quantity": 1, "slot": 1}
        text = json.dumps(entry | number | {"user": "nobody", "request": ""})
        self.store.add_entries(lane, [self.chance.choice((b"\xff{", text.encode()))])
        self.counts["poison"] += 1
        self.checks.deceived = True

    # Looking

    def note(self, *what: str) -> None:
        line = f"{self.loop.time():.6f} {' '.join(what)}"
        self.digest.update(line.encode())
        self.trace.append(line)

    def _look_at_gate(self) -> None:
        for number, lane in self.store.contents.lanes.items():
            for entry_id in lane.new:
                known = (number, lane.entries.get(entry_id, b""))
                if known[1] and known not in self._payloads:
                    self._payloads.append(known)
        self.check(lambda: self.checks.after_gate(self.now_ms(), self.now_s()))
        self.check(self.lines.after_gate)

    def committed(self, process: Process) -> None:
        self.check(self.checks.after_commit)
        self.check(self.lines.after_commit)

    def check(self, what: Callable[[], None]) -> None:
        if not self.over and not self.broken.done():
            try:
                what()
            except Broken as error:
                self.break_(str(error))

    def break_(self, what: str) -> None:
        if not self.broken.done():
            self.note("broken:", what)
            self.broken.set_exception(Broken(what))

    # Before it begins

    async def announce(self, drafts: list[SaleDraft]) -> list[tuple[str, Sale]]:
        operator = Process("operator", self.file)
        self.processes.append(operator)
        ids = PublicIds(KEY, "sale")
        ledger = operator.start_in(lambda: ApiNode(self, operator)).ledger
        made = [
            await operator.ask(partial(ledger.create_sale, draft, n % (LANES - draft.lanes + 1)))
            for n, draft in enumerate(drafts)
        ]
        return [(ids.encode(sale.id), sale) for sale in made]
