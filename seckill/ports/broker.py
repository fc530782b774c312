"""What the use cases need from a message broker, beyond its being a transport."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from seckill.ports.transport import Delivery, Transport


class RelaySource(Protocol):
    """The lane streams as seen by the relay, which publishes their entries to a broker. Entries stay in their streams
    until a worker settles them; this side only remembers which of them the broker has."""

    async def prepare(self, lanes: Sequence[int]) -> None: ...

    async def read(self, count: int, wait_s: float) -> list[Delivery]: ...

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]: ...

    async def confirmed(self, deliveries: Sequence[Delivery]) -> None:
        """The broker has these: they will not be read again."""

    async def start_over(self) -> None:
        """The broker has lost something: whatever is still in the streams will be read again."""

    async def oldest_s(self) -> float:
        """The age of the oldest entry that is not settled; 0 if there is none."""


class LaneStreams(Transport, RelaySource, Protocol):
    """Both at once: a broker's transport settles orders here."""


class Courier(Protocol):
    """A broker, as seen by the relay."""

    async def post(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Publishes them. Returns those that the broker has confirmed to keep; the others it has refused."""

    async def waiting(self) -> int | None:
        """Messages that no worker has taken yet; None if the broker had lost the queue."""


class Due(StrEnum):
    EXPIRY = "expiry"
    RETRY = "retry"


class Delays(Protocol):
    """A broker's delay queues. They only wake the sweeps, which then ask the ledger, and nothing depends on them: the
    sweeps find whatever they lose. So sending never raises because the broker is away."""

    async def remind_of_expiry(self, after_s: float) -> None: ...

    async def remind_of_retry(self, after_s: float, payload: str, reason: str) -> None:
        """The entry is sent along, so that people can see what waits."""

    async def give_up(self, payload: str, reason: str) -> None:
        """Shows people an entry that is not tried again, as the ledger has decided."""

    async def due(self, wait_s: float) -> set[Due]:
        """Returns the reminders that are due, waiting up to `wait_s` for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The parts that only exist with a broker."""

    source: RelaySource
    courier: Courier
    delays: Delays
