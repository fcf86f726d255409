"""Time as an event: when a partition's owner logs a tick, and how far its clock is off.

Timers stand in log time, which brokers stamp; the owner only has its own clock. Every tick that
comes back shows the difference, so a wrong clock makes timers late by a moment, never wrong:
what a tick wakes is decided by the tick's own log time alone (engine rule 22).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_SAMPLES = 8
"""Ticks that the difference is taken from. Lower: one slow tick skews it. Higher: a corrected
clock is believed later."""


def wall_ms() -> int:
    """This machine's wall clock, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class LogClock:
    """An estimate of the log's time, never ahead of it by more than an append takes."""

    def __init__(self, now_ms: Callable[[], int] = wall_ms) -> None:
        self._now_ms = now_ms
        self._skews_ms: deque[int] = deque(maxlen=_SAMPLES)

    def wall_ms(self) -> int:
        """The owner's own clock, as a tick records it."""
        return self._now_ms()

    def now_ms(self) -> int:
        """What a broker would stamp about now."""
        return self._now_ms() + self.skew_ms

    @property
    def skew_ms(self) -> int:
        """How far the log's time is ahead of this clock; each sample holds an append's delay, so
        the least one is nearest."""
        return min(self._skews_ms, default=0)

    def learn(self, owner_ms: int, log_ms: int) -> None:
        """A tick that was written at `owner_ms` got the log time `log_ms`."""
        self._skews_ms.append(log_ms - owner_ms)


class TickGate:
    """At most one tick of a partition is on its way, and they keep a little apart."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_s = gap_ms / 1_000
        self._out = False
        self._sent_at_s = 0.0

    def wait_s(self, due_ms: int | None, now_ms: int) -> float | None:
        """Seconds until a tick is wanted; None while there is nothing to wait for."""
        if self._out or due_ms is None:
            return None
        gap_s = self._sent_at_s + self._gap_s - time.monotonic()
        return max((due_ms - now_ms) / 1_000, gap_s, 0.0)

    def sent(self) -> None:
        """A tick is in the open transaction."""
        self._out = True
        self._sent_at_s = time.monotonic()

    def came_back(self) -> None:
        """The tick was consumed, or its transaction aborted."""
        self._out = False
