"""What the loop counts, as a port; `ops` puts Prometheus behind it."""

from __future__ import annotations

from typing import Protocol


class LoopMetrics(Protocol):
    """Every method is called on the stage's own thread and must neither block nor raise."""

    def folded(self, stage: str, records: int) -> None:
        """Input records and woken keys of one committed transaction."""

    def committed(self, stage: str, seconds: float) -> None:
        """One transaction is committed and stored; `seconds` from its first record on."""

    def aborted(self, stage: str, cause: str) -> None:
        """One transaction was given up; `cause` is a short stable word."""

    def dead_lettered(self, stage: str, code: str) -> None:
        """One record went to `dead-letters`."""

    def restored(self, stage: str, partition: int, rows: int) -> None:
        """Rows that were read back from the changelog before a partition ran."""

    def ticked(self, stage: str, lag_ms: int) -> None:
        """A tick was consumed `lag_ms` after the earliest timer that it wakes was due."""

    def stored_row(self, stage: str, row_bytes: int) -> None:
        """Size of a state row: near 1 MiB its record is refused by the broker."""

    def partitions(self, stage: str, running: int, restoring: int) -> None:
        """How many partitions this worker runs, and how many it still restores."""


class NoMetrics:
    """Counts nothing."""

    def folded(self, stage: str, records: int) -> None:
        """See LoopMetrics."""

    def committed(self, stage: str, seconds: float) -> None:
        """See LoopMetrics."""

    def aborted(self, stage: str, cause: str) -> None:
        """See LoopMetrics."""

    def dead_lettered(self, stage: str, code: str) -> None:
        """See LoopMetrics."""

    def restored(self, stage: str, partition: int, rows: int) -> None:
        """See LoopMetrics."""

    def ticked(self, stage: str, lag_ms: int) -> None:
        """See LoopMetrics."""

    def stored_row(self, stage: str, row_bytes: int) -> None:
        """See LoopMetrics."""

    def partitions(self, stage: str, running: int, restoring: int) -> None:
        """See LoopMetrics."""
