"""An overlay reads as the store would after the commit, and an abort leaves no trace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams.overlay import Overlay
from streams.store import MemoryStore, StoreMark

MARK = StoreMark(1, {}, 0, "")
rows = st.binary(min_size=1, max_size=2)
changes = st.dictionaries(rows, st.none() | st.binary(max_size=3))


@given(st.dictionaries(rows, st.binary(max_size=3)), changes, rows, st.binary(max_size=1))
def test_reading_through_equals_reading_after_the_commit(
    stored: dict[bytes, bytes], staged: dict[bytes, bytes | None], start: bytes, prefix: bytes
) -> None:
    store = MemoryStore()
    store.rows = dict(stored)
    overlay = Overlay(store)
    for row, value in staged.items():
        overlay.put(row, value)
    seen = list(overlay.scan(start, prefix))
    got = {row: overlay.get(row) for row in {*stored, *staged}}
    assert store.rows == stored

    overlay.write_through(MARK, lambda: None)

    assert seen == list(store.scan(start, prefix))
    assert got == {row: store.get(row) for row in got}
    assert overlay.staged == {}


@given(st.dictionaries(rows, st.binary(max_size=3)), changes)
def test_a_discarded_overlay_reads_as_the_store(
    stored: dict[bytes, bytes], staged: dict[bytes, bytes | None]
) -> None:
    store = MemoryStore()
    store.rows = dict(stored)
    overlay = Overlay(store)
    for row, value in staged.items():
        overlay.put(row, value)
    overlay.discard()
    assert dict(overlay.scan(b"", b"")) == stored
