"""Deletes what the ledger no longer needs."""

from typing import Protocol


class RetentionLedger(Protocol):
    async def prune_letters(self, kept_ms: int, count: int) -> int:
        """Letters about which all is decided, and whose rounds the gate has forgotten. Returns how many went."""

    async def prune_lines(self, kept_ms: int, count: int) -> int:
        """Lines of rounds that were retired longer ago than this, and their entries. Returns how many entries went, or
        `count` if there may be more."""
