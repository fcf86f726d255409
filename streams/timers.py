"""Which key is due when: timer rows in the store, beside the state and in the same batch.

RocksDB's own expiry is not used: it would bring keys back on restore (engine rule 21). Rows sort
by time, so the earliest is the first; a floor keeps scans away from the graves of past timers.
"""

from __future__ import annotations

from itertools import islice

from streams.overlay import Overlay
from streams.rows import PRESENT, TIMER_PREFIX, parse_timer_row, timer_floor, timer_row


class Timers:
    """The timers of one partition."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._floor_ms = 0
        self._earliest_ms: int | None = None
        self._known = False

    def put(self, due_ms: int, key: str) -> tuple[bytes, bytes]:
        """Stage a timer; returns its row and value for the changelog."""
        row = timer_row(due_ms, key)
        self._overlay.put(row, PRESENT)
        self._floor_ms = min(self._floor_ms, due_ms)
        if self._known and (self._earliest_ms is None or due_ms < self._earliest_ms):
            self._earliest_ms = due_ms
        return row, PRESENT

    def drop(self, due_ms: int, key: str) -> bytes:
        """Stage a timer's removal; returns its row. A rewritten key's old timer is gone with it,
        so a sweep never meets a key that was rewritten in the same batch (engine rule 21)."""
        row = timer_row(due_ms, key)
        self._overlay.put(row, None)
        if due_ms == self._earliest_ms:
            self._known = False
        return row

    def earliest_ms(self) -> int | None:
        """When the next key is due, or None."""
        if not self._known:
            found = next(self._overlay.scan(timer_floor(self._floor_ms), TIMER_PREFIX), None)
            self._earliest_ms = None if found is None else parse_timer_row(found[0])[0]
            self._known = True
            if self._earliest_ms is not None:
                self._floor_ms = self._earliest_ms
        return self._earliest_ms

    def due(self, at_ms: int, keys_max: int) -> list[tuple[int, str]]:
        """At most `keys_max` timers due at `at_ms`, earliest first (engine rule 21: bounded)."""
        rows = self._overlay.scan(timer_floor(self._floor_ms), TIMER_PREFIX)
        found = (parse_timer_row(row) for row, _ in islice(rows, keys_max))
        return [(due_ms, key) for due_ms, key in found if due_ms <= at_ms]

    def forget(self) -> None:
        """After an abort: what was learned through staged rows no longer holds."""
        self._floor_ms = 0
        self._earliest_ms = None
        self._known = False
