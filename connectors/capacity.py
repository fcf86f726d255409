"""A bound on work in flight, shared by the thread that takes work and the loop that does it."""

from __future__ import annotations

import threading


class Capacity:
    """Counts work in flight up to `in_flight_max`."""

    def __init__(self, in_flight_max: int) -> None:
        self._max = in_flight_max
        self._used = 0
        self._changed = threading.Condition()

    def wait_room(self, timeout_s: float) -> int:
        """How much may be taken now; waits up to `timeout_s` for room, 0 if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._used < self._max, timeout_s)
            return max(self._max - self._used, 0)

    def limit(self, in_flight_max: int) -> None:
        """Change the bound; what is in flight already stays."""
        with self._changed:
            self._max = in_flight_max
            self._changed.notify()

    def take(self, count: int) -> None:
        """Begin `count` pieces of work."""
        with self._changed:
            self._used += count

    def release(self) -> None:
        """One piece of work is done."""
        with self._changed:
            self._used -= 1
            self._changed.notify()

    @property
    def used(self) -> int:
        """How much is in flight."""
        return self._used
