"""States by key: packed rows on disk, decoded objects in a bounded cache, timers beside them.

Only rows whose bytes changed are staged. The cache may hold what an open transaction staged, so
an abort drops all of it (engine rule 13).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from processors.step import Fold
from streams.overlay import Overlay
from streams.rows import ROWS_MAX, pack_ms, pushed_row, state_row, unpack_ms
from streams.timers import Timers
from tallystick.errors import StateCorrupt, invariant


@dataclass(frozen=True, slots=True)
class Entry:
    """A key as it stands: `timer_ms` is the time in its timer row, later than the fold's own
    wish if `pushed`."""

    state: Any
    rows: tuple[bytes, ...] = ()
    timer_ms: int | None = None
    pushed: bool = False


ABSENT = Entry(None)


class States:
    """The states of one partition."""

    def __init__(
        self,
        fold: Fold[Any],
        overlay: Overlay,
        timers: Timers,
        cached_max: int,
        on_row: Callable[[bytes, bytes | None], None],
        on_size: Callable[[int], None],
    ) -> None:
        self._fold = fold
        self._overlay = overlay
        self._timers = timers
        self._cached_max = cached_max
        self._on_row = on_row
        self._on_size = on_size
        self._cache: OrderedDict[str, Entry] = OrderedDict()

    def load(self, key: str) -> Entry:
        """The key's entry; raises StateCorrupt if its rows cannot be unpacked."""
        entry = self._cache.get(key)
        if entry is not None:
            self._cache.move_to_end(key)
            return entry
        rows: list[bytes] = []
        while (row := self._overlay.get(state_row(key, len(rows)))) is not None:
            rows.append(row)
        return self._unpack(key, tuple(rows)) if rows else ABSENT

    def _unpack(self, key: str, rows: tuple[bytes, ...]) -> Entry:
        try:
            state = self._fold.unpack(rows)
        except Exception as error:
            raise StateCorrupt(
                f"the state of key {key!r} cannot be unpacked: {error}",
                where="store",
                fix="run a version that can read it; no record is skipped meanwhile",
            ) from error
        pushed = self._overlay.get(pushed_row(key))
        timer_ms = self._due_ms(state) if pushed is None else unpack_ms(pushed)
        return Entry(state, rows, timer_ms, pushed is not None)

    def plan(self, state: Any, not_before_ms: int | None) -> Entry:
        """The entry that `state` makes, nothing staged yet; whatever the fold raises comes out.

        A timer earlier than `not_before_ms` is pushed to it, so that a key which stays due
        cannot hold up the tick that woke it.
        """
        if state is None:
            return ABSENT
        rows = tuple(self._fold.pack(state))
        invariant(0 < len(rows) <= ROWS_MAX, "a state packs into at least one row")
        due_ms = self._due_ms(state)
        if due_ms is None or not_before_ms is None or due_ms >= not_before_ms:
            return Entry(state, rows, due_ms)
        return Entry(state, rows, not_before_ms, pushed=True)

    def _due_ms(self, state: Any) -> int | None:
        due_ms = self._fold.due_ms(state)
        return None if due_ms is None else max(due_ms, 0)

    def heal_timer(self, key: str, stale_ms: int) -> None:
        """Replace a timer row that the state does not account for: another version of the fold
        wrote it, and would have asked for another time."""
        self._on_row(self._timers.drop(stale_ms, key), None)
        entry = self.load(key)
        if entry.timer_ms is not None:
            self._on_row(*self._timers.put(entry.timer_ms, key))

    def take(self, key: str, before: Entry, after: Entry) -> None:
        """Stage what differs between the two, and remember the second."""
        if after.rows != before.rows:
            for index, row in enumerate(after.rows):
                if index >= len(before.rows) or before.rows[index] != row:
                    self._stage(state_row(key, index), row)
                    self._on_size(len(row))
            for index in range(len(after.rows), len(before.rows)):
                self._stage(state_row(key, index), None)
        if after.timer_ms != before.timer_ms:
            self._move_timer(key, before.timer_ms, after.timer_ms)
        if after.pushed:
            if not before.pushed or before.timer_ms != after.timer_ms:
                self._stage(pushed_row(key), pack_ms(after.timer_ms or 0))
        elif before.pushed:
            self._stage(pushed_row(key), None)
        self._remember(key, after)

    def _move_timer(self, key: str, old_ms: int | None, new_ms: int | None) -> None:
        if old_ms is not None:
            self._on_row(self._timers.drop(old_ms, key), None)
        if new_ms is not None:
            self._on_row(*self._timers.put(new_ms, key))

    def _stage(self, row: bytes, value: bytes | None) -> None:
        self._overlay.put(row, value)
        self._on_row(row, value)

    def _remember(self, key: str, entry: Entry) -> None:
        if entry is ABSENT:
            self._cache.pop(key, None)
            return
        self._cache[key] = entry
        self._cache.move_to_end(key)
        if len(self._cache) > self._cached_max:
            self._cache.popitem(last=False)

    def forget(self) -> None:
        """After an abort: drop whatever the transaction may have left here."""
        self._cache.clear()
