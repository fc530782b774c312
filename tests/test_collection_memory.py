"""Python does not look again through the objects of the collection, but does look through those that tests make."""

import gc


def test_what_was_collected_is_not_looked_through() -> None:
    assert gc.get_freeze_count() > 100_000, "some modules of ours, and what they import"
    assert gc.isenabled()
