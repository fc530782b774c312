"""What a gate tells of the space that its servers have left."""

from seckill.domain.space import SpaceKind
from seckill.ports.gate import Gate


async def test_each_primary_tells_of_its_memory_and_of_its_disk_if_that_is_here(
    gate: Gate, backend_url: str | None
) -> None:
    spaces = await gate.spaces()
    for space in spaces:
        assert 0 < space.free_bytes <= space.size_bytes
        assert space.where
    kinds = [space.kind for space in spaces]
    if backend_url is None:
        assert kinds == []
    elif "+cluster:" in backend_url:  # over the network: it may be any machine
        assert kinds == [SpaceKind.MEMORY] * 3
        assert len({space.where for space in spaces}) == 3
    else:
        assert kinds == [SpaceKind.MEMORY, SpaceKind.DISK]
