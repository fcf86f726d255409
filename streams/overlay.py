"""Rows staged by an open transaction, read through to the store (engine rule 13).

Nothing here touches the disk: an abort forgets the staged rows, and a commit hands them over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.store import Rows, RowStore, StoreMark


class Overlay:
    """A store with staged changes on top; None stands for a staged delete."""

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._staged: dict[bytes, bytes | None] = {}

    @property
    def staged(self) -> Rows:
        """What a commit would write."""
        return self._staged

    def get(self, row: bytes) -> bytes | None:
        """The row as this transaction sees it."""
        if row in self._staged:
            return self._staged[row]
        return self._store.get(row)

    def put(self, row: bytes, value: bytes | None) -> None:
        """Stage a value, or a delete."""
        self._staged[row] = value

    def settle(self) -> Iterator[tuple[bytes, bytes | None]]:
        """The staged rows that a changelog needs, each once, with its last value.

        A row that was staged and deleted again before any store had it (a timer that moved
        twice) is forgotten: nobody would miss it.
        """
        for row, value in list(self._staged.items()):
            if value is None and self._store.get(row) is None:
                del self._staged[row]
            else:
                yield row, value

    def scan(self, start: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows of `prefix` from `start` on, in order, staged ones included.

        What is staged while the scan runs may or may not be seen: take what you need first.
        """
        staged = sorted(row for row in self._staged if row >= start and row.startswith(prefix))
        waiting = iter(staged)
        mine = next(waiting, None)
        for row, value in self._store.scan(start, prefix):
            while mine is not None and mine < row:
                yield from self._own(mine)
                mine = next(waiting, None)
            if mine == row:
                yield from self._own(row)
                mine = next(waiting, None)
            elif row not in self._staged:
                yield row, value
        while mine is not None:
            yield from self._own(mine)
            mine = next(waiting, None)

    def _own(self, row: bytes) -> Iterator[tuple[bytes, bytes]]:
        value = self._staged.get(row)
        if value is not None:
            yield row, value

    def write_through(self, mark: StoreMark, halfway: Callable[[], None]) -> None:
        """After a commit: hand the staged rows to the store in one batch (engine rule 16)."""
        self._store.write(self._staged, mark, halfway)
        self._staged.clear()

    def discard(self) -> None:
        """After an abort nothing local has changed (engine rule 13)."""
        self._staged.clear()
