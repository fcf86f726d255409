"""The only clock of a simulated world: time moves from one event to the next, never by itself.

Production code that reads a clock (`streams.ticks`, `streams.batch`) gets a `VirtualTime` in the
place of its `time` module, so that it sees what the process that runs just now would see.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import streams.batch
import streams.ticks

START_MS = 1_700_000_000_000
"""Where every world's time begins: any date on which log times look like log times."""


@dataclass
class Clock:
    """Events in time order; those of one moment in the order in which they were planned."""

    now_ms: int = START_MS
    skew_ms: int = 0
    events: int = 0
    _heap: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)

    def at(self, when_ms: int, act: Callable[[], None]) -> None:
        """Plan `act`; a moment that has passed means now."""
        self.events += 1
        heapq.heappush(self._heap, (max(when_ms, self.now_ms), self.events, act))

    def after(self, pause_ms: int, act: Callable[[], None]) -> None:
        """Plan `act` in `pause_ms` from now."""
        self.at(self.now_ms + pause_ms, act)

    def run(self, until_ms: int) -> None:
        """Let everything happen that is planned up to `until_ms`."""
        while self._heap and self._heap[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(self._heap)
            act()
        self.now_ms = max(self.now_ms, until_ms)


class VirtualTime:
    """What production code sees in the place of the `time` module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def time_ns(self) -> int:
        """The running process's wall clock, which may be off."""
        return (self._clock.now_ms + self._clock.skew_ms) * 1_000_000

    def monotonic(self) -> float:
        """The machine's own seconds."""
        return self._clock.now_ms / 1_000


@contextmanager
def virtual_time(clock: Clock) -> Iterator[None]:
    """Production code reads `clock` while this is open."""
    time = VirtualTime(clock)
    with patch.object(streams.ticks, "time", time), patch.object(streams.batch, "time", time):
        yield
