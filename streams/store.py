"""The local rows of one (stage, partition): a rebuildable cache of its changelog in RocksDB.

It is written only after a commit, as one batch that holds rows and positions together (engine
rule 16), so it may be behind the log but never ahead. It knows nothing of Kafka.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

import msgspec
from rocksdict import Options, Rdict, WriteBatch

from tallystick.errors import InvariantBroken, StateCorrupt

Rows = Mapping[bytes, bytes | None]

_MARK = b"m"
_SUSPECT = "SUSPECT"
"""File in a store's folder: a read or write failed, so the next open wipes."""

_WRITE_BUFFER_BYTES = 16 << 20
"""Memtable of one partition. Lower: more small files. Higher: memory times partitions."""

_OPEN_FILES_MAX = 64
"""Open files of one partition. Lower: more reopening. Higher: many partitions meet the limit."""

_LOG_FILES_MAX = 2
"""RocksDB's own text logs that are kept. Higher: state folders fill up over restarts."""


class StoreMark(msgspec.Struct, frozen=True, array_like=True):
    """Where a store stands: next changelog offset, source positions, wall clock, topic's id.

    `stamp_ms` is the last wall-clock time at which the store was known to be current (engine
    rule 18); a catch-up keeps the old stamp until it has ended.
    """

    changelog_next: int
    sources: dict[str, int]
    stamp_ms: int
    changelog_id: str


class StoreLocked(Exception):
    """The folder is open in another process (or still in this one); the caller waits."""


class RowStore(Protocol):
    """What a task needs of its store."""

    def get(self, row: bytes) -> bytes | None:
        """A row's value, or None."""

    def scan(self, start: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows of `prefix` from `start` on, in order."""

    def write(self, rows: Rows, mark: StoreMark, halfway: Callable[[], None]) -> None:
        """Put rows (None deletes) and mark, all or nothing."""

    def close(self) -> None:
        """Let go of it."""


class Store:
    """One RocksDB in raw mode; all errors of the library surface as StateCorrupt."""

    def __init__(self, path: Path) -> None:
        """Open or create; raises StoreLocked or StateCorrupt. A suspect folder is wiped first."""
        self._path = path
        if (path / _SUSPECT).exists():
            self.wipe_folder(path)
        self._db = self._open(path)
        self.mark = self._read_mark()

    @staticmethod
    def wipe_folder(path: Path) -> None:
        """Remove everything in it; the caller rebuilds from the changelog."""
        shutil.rmtree(path, ignore_errors=True)

    @classmethod
    def open_or_wipe(cls, path: Path) -> Store:
        """Open; a folder that cannot be opened is wiped and opened again (failure test 28)."""
        try:
            return cls(path)
        except StateCorrupt:
            cls.wipe_folder(path)
            return cls(path)

    def get(self, row: bytes) -> bytes | None:
        """See RowStore."""
        try:
            value: bytes | None = self._db.get(row)
        except Exception as error:  # noqa: BLE001 - rocksdict raises plain Exception
            self._condemn(error)
        return value

    def scan(self, start: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See RowStore."""
        cursor = self._db.iter()
        cursor.seek(start)
        while cursor.valid():
            row: bytes = cursor.key()
            if not row.startswith(prefix):
                break
            yield row, cursor.value()
            cursor.next()
        try:
            cursor.status()
        except Exception as error:  # noqa: BLE001 - rocksdict raises plain Exception
            self._condemn(error)

    def write(
        self, rows: Rows, mark: StoreMark, halfway: Callable[[], None] = lambda: None
    ) -> None:
        """See RowStore: one WriteBatch holds rows and positions (engine rule 16)."""
        batch = WriteBatch(raw_mode=True)
        for row, value in rows.items():
            if value is None:
                batch.delete(row)
            else:
                batch.put(row, value)
        halfway()
        batch.put(_MARK, msgspec.msgpack.encode(mark))
        try:
            self._db.write(batch)
        except Exception as error:  # noqa: BLE001 - rocksdict raises plain Exception
            self._condemn(error)
        self.mark = mark

    def is_empty(self) -> bool:
        """Whether there is no row beside the mark."""
        cursor = self._db.iter()
        cursor.seek_to_first()
        while cursor.valid() and cursor.key() == _MARK:
            cursor.next()
        return not cursor.valid()

    def close(self) -> None:
        """Release the folder's lock."""
        self._db.close()

    def wiped(self) -> Store:
        """This store, closed, emptied and opened anew."""
        self.close()
        self.wipe_folder(self._path)
        return Store(self._path)

    def _open(self, path: Path) -> Any:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
        options.set_max_open_files(_OPEN_FILES_MAX)
        options.set_keep_log_file_num(_LOG_FILES_MAX)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return Rdict(str(path), options=options)
        except Exception as error:
            if "LOCK" in str(error) and "lock" in str(error):
                raise StoreLocked(str(error)) from error
            raise StateCorrupt(
                f"the store cannot be opened: {error}", where=str(path), fix="check the disk"
            ) from error

    def _read_mark(self) -> StoreMark | None:
        value = self.get(_MARK)
        try:
            return None if value is None else msgspec.msgpack.decode(value, type=StoreMark)
        except msgspec.ValidationError as error:
            self.close()
            raise StateCorrupt(
                f"the store's mark cannot be read: {error}", where=str(self._path)
            ) from error

    def _condemn(self, error: Exception) -> NoReturn:
        (self._path / _SUSPECT).touch()
        raise StateCorrupt(
            f"the store failed: {error}",
            where=str(self._path),
            fix="check the disk and start again; the store is then rebuilt from the changelog",
        ) from error


class MemoryStore:
    """Rows in a dict, for replay and unit tests; the contract suite holds it to `Store`."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.mark: StoreMark | None = None

    def get(self, row: bytes) -> bytes | None:
        """See RowStore."""
        return self.rows.get(row)

    def scan(self, start: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See RowStore."""
        names = sorted(row for row in self.rows if row >= start and row.startswith(prefix))
        for row in names:
            yield row, self.rows[row]

    def write(
        self, rows: Rows, mark: StoreMark, halfway: Callable[[], None] = lambda: None
    ) -> None:
        """See RowStore."""
        halfway()
        for row, value in rows.items():
            if value is None:
                self.rows.pop(row, None)
            else:
                self.rows[row] = value
        self.mark = mark

    def close(self) -> None:
        """See RowStore."""


def store_path(state_dir: Path, stage: str, partition: int) -> Path:
    """Where a partition's store lives; engine rule 25: no other process may share it."""
    if "/" in stage:
        raise InvariantBroken(f"stage name {stage!r} cannot be a folder")
    return state_dir / stage / str(partition)
