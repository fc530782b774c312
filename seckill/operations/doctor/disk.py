"""Notes a disk that is nearly full."""

from seckill.domain.space import Space
from seckill.operations.doctor.examination import Health

_GB = 1_000_000_000


def note_disk(health: Health, whose: str, disk: Space) -> None:
    if disk.is_short:
        health.advice.append(
            f"The disk of {whose} is nearly full ({disk.free_bytes / _GB:.1f} of {disk.size_bytes / _GB:.1f} GB free "
            f"for {disk.where}): make room there before it stops."
        )
