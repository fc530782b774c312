"""Python does not look again through the objects of the collection, but does look through those that tests make."""

import gc

from seckill.cli.async_command import run
from seckill.loops import Stop
from seckill.settings import Settings


def test_what_was_collected_is_not_looked_through() -> None:
    assert gc.get_freeze_count() > 100_000, "some modules of ours, and what they import"
    assert gc.isenabled()


def test_a_command_leaves_frozen_what_the_program_around_it_has_frozen() -> None:
    async def done(_: Stop) -> None: ...

    run(done, Settings())
    assert gc.get_freeze_count() > 100_000
