"""Remembers the last report of every process for a while after it has gone from the board.

A board that was lost fills again process by process. If sums fell and rose again with it, the old counts would look
like new ones. So a process that is missing for a moment is counted as it was."""

from collections.abc import Iterable

from seckill.ports.board import NodeReport, Seen

# As long as a board keeps a report that is not renewed. All keepers that write the same seconds wait this long, by the
# gate's clock, so that counts go down once and not up and down.
REMEMBERED_S = 60


class ReportMemory:
    def __init__(self) -> None:
        self._known: dict[str, tuple[int, NodeReport]] = {}

    def reports(self, seen: Iterable[Seen], at_s: int) -> list[NodeReport]:
        """Returns the reports of processes that are seen now or were seen lately."""
        self._known |= {one.report.node: (at_s, one.report) for one in seen}
        self._known = {
            node: (seen_s, report) for node, (seen_s, report) in self._known.items() if at_s - seen_s < REMEMBERED_S
        }
        return [report for _, report in self._known.values()]
