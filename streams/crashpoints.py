"""Named places where a process may die, as a port: production passes `NoCrash`, a test kills.

Each point lies on one side of a boundary whose two sides must not differ in what the outside
world sees (engine-rules.md, part b). The loop must not know what a point does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class CrashPoint(StrEnum):
    """Where the loop stands; the order is the order in which one batch passes them."""

    AFTER_PRODUCE = "after_produce"
    BEFORE_SEND_OFFSETS = "before_send_offsets"
    AFTER_SEND_OFFSETS = "after_send_offsets"
    AFTER_COMMIT = "after_commit"
    MID_STORE_WRITE = "mid_store_write"
    AFTER_STORE_WRITE = "after_store_write"
    AFTER_ABORT = "after_abort"
    MID_RESTORE = "mid_restore"


class CrashPoints(Protocol):
    """Told of every point as it is passed."""

    def reach(self, point: CrashPoint) -> None:
        """Return to go on; a test's double may end or stop the process instead."""


class NoCrash:
    """Goes on."""

    def reach(self, point: CrashPoint) -> None:
        """See CrashPoints."""
