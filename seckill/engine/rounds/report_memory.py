"""The last report of every process, for a while after it has gone from the board.

A board that was lost fills again process by process. Counts that went down with it and came up again would look like
new ones, so whoever adds up what is new needs a process that is missing for a moment as it was."""

from collections.abc import Iterable

from seckill.ports.board import NodeReport, Seen

# As long as a board keeps a report that is not renewed. Keepers that write the same seconds all wait so long, by the
# gate's clock: counts go down once and not up and down.
REMEMBERED_S = 60


class ReportMemory:
    def __init__(self) -> None:
        self._known: dict[str, tuple[int, NodeReport]] = {}

    def reports(self, seen: Iterable[Seen], at_s: int) -> list[NodeReport]:
        """Of those that are seen now, and of those that were seen lately."""
        self._known |= {one.report.node: (at_s, one.report) for one in seen}
        self._known = {
            node: (seen_s, report) for node, (seen_s, report) in self._known.items() if at_s - seen_s < REMEMBERED_S
        }
        return [report for _, report in self._known.values()]
