"""Keeps Python from looking for garbage among what pytest and the imports make, which lives as long as the process.

To look while it grows took half of the time of collecting, in each of the processes that share the tests, and to look
through it later took half a second each time, whichever test it fell on. What tests make is looked through as ever.
"""

import gc
from collections.abc import Iterator

import pytest

gc.disable()  # as early as this is imported; from the end of the collection on, as ever


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
