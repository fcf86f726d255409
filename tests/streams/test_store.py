"""The contract of a row store, held by both; and what only a real one has: locks and torn files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams.store import MemoryStore, RowStore, Store, StoreLocked, StoreMark, store_path
from tallystick.errors import InvariantBroken, StateCorrupt

MARK = StoreMark(7, {"plan-requests": 3}, 1_000, "id")


def _nothing() -> None:
    pass


@pytest.fixture(params=["memory", "rocksdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RowStore]:
    """One adapter after the other."""
    opened: RowStore = MemoryStore() if request.param == "memory" else Store(tmp_path / "s")
    yield opened
    opened.close()


def test_what_is_written_is_read(store: RowStore) -> None:
    store.write({b"a": b"1", b"b": b""}, MARK, _nothing)
    assert (store.get(b"a"), store.get(b"b"), store.get(b"c")) == (b"1", b"", None)


def test_none_deletes(store: RowStore) -> None:
    store.write({b"a": b"1"}, MARK, _nothing)
    store.write({b"a": None, b"z": None}, MARK, _nothing)
    assert store.get(b"a") is None


def test_a_scan_is_ordered_and_bounded_by_start_and_prefix(store: RowStore) -> None:
    names = (b"ta", b"tc", b"tb", b"s", b"u")
    store.write(dict.fromkeys(names, b"x"), MARK, _nothing)
    assert [row for row, _ in store.scan(b"tb", b"t")] == [b"tb", b"tc"]


def test_a_fault_halfway_writes_neither_rows_nor_mark(store: RowStore) -> None:
    store.write({b"a": b"1"}, MARK, _nothing)

    def fail() -> None:
        raise RuntimeError("halfway")

    with pytest.raises(RuntimeError):
        store.write({b"a": b"2", b"b": b"2"}, StoreMark(8, {}, 2_000, "id"), fail)
    assert (store.get(b"a"), store.get(b"b")) == (b"1", None)


def test_rows_and_mark_survive_together(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    assert store.mark is None
    assert store.is_empty()
    store.write({b"a": b"1"}, MARK)
    store.close()
    again = Store(tmp_path / "s")
    assert again.mark == MARK
    assert again.get(b"a") == b"1"
    assert not again.is_empty()
    again.close()


@pytest.mark.parametrize("cut_bytes", [1, 5, 20, 40])
def test_04_a_torn_last_batch_is_absent_whole(tmp_path: Path, cut_bytes: int) -> None:
    """What a crash inside RocksDB's own write leaves: its log's last record is cut short."""
    store = Store(tmp_path / "s")
    store.write({b"a": b"1"}, MARK)
    store.write({b"a": b"2", b"b": b"2"}, StoreMark(8, {}, 2_000, "id"))
    torn = tmp_path / "torn"
    shutil.copytree(tmp_path / "s", torn)
    store.close()
    (log,) = torn.glob("*.log")
    log.write_bytes(log.read_bytes()[:-cut_bytes])
    again = Store(torn)
    assert again.mark == MARK
    assert (again.get(b"a"), again.get(b"b")) == (b"1", None)
    again.close()


def test_a_folder_that_is_open_is_locked_in_this_process_and_in_another(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    with pytest.raises(StoreLocked):
        Store(tmp_path / "s")
    code = (
        "import sys; from pathlib import Path; from streams.store import *\n"
        "try: Store(Path(sys.argv[1]))\n"
        "except StoreLocked: sys.exit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], check=False)
    assert ended.returncode == 9
    store.close()


def _break_manifest(folder: Path) -> None:
    for path in folder.glob("MANIFEST*"):
        path.write_bytes(b"\xff" * 64)


def _suspect(folder: Path) -> None:
    (folder / "SUSPECT").touch()


@pytest.mark.parametrize("harm", [_break_manifest, _suspect])
def test_28_a_store_that_is_corrupt_or_suspect_is_opened_empty(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    store = Store(tmp_path / "s")
    store.write({b"a": b"1"}, MARK)
    store.close()
    harm(tmp_path / "s")
    again = Store.open_or_wipe(tmp_path / "s")
    assert again.mark is None
    assert again.is_empty()
    again.close()


def test_28_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StateCorrupt, match="check the disk"):
        Store.open_or_wipe(tmp_path / "file" / "s")


def test_a_stage_name_cannot_leave_the_state_folder() -> None:
    with pytest.raises(InvariantBroken):
        store_path(Path("state"), "../else", 0)
