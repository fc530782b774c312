"""Notes a disk that is nearly full."""

from seckill.domain.space import Space
from seckill.operations.doctor.examination import Health


def note_disk(health: Health, whose: str, disk: Space) -> None:
    if disk.is_short:
        health.advice.append(
            f"The disk of {whose} is nearly full ({_size(disk.free_bytes)} of {_size(disk.size_bytes)} free for "
            f"{disk.where}): make room there before it stops."
        )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
