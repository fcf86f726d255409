"""Row keys of the store and the changelog: one byte of kind, then an unambiguous name.

A key may hold any character, so its length comes first wherever something follows it.
"""

from __future__ import annotations

import struct

TIMER_PREFIX = b"t"
_STATE = struct.Struct(">cI")
_INDEX = struct.Struct(">H")
_DUE = struct.Struct(">cQ")
_DUE_MS = struct.Struct(">Q")

ROWS_MAX = 1 << 16
"""Rows of one key; the index has two bytes."""

PRESENT = b"\x01"
"""Value of a row whose key says everything; an empty value would be kept for ever by compaction
tools that take it for a delete, and a null one is a delete (engine rule 20)."""


def state_row(key: str, index: int) -> bytes:
    """Row `index` of a key's packed state."""
    name = key.encode()
    return _STATE.pack(b"s", len(name)) + name + _INDEX.pack(index)


def parse_state_row(row: bytes) -> tuple[str, int] | None:
    """The key and index of a state row, or None for a row of another kind."""
    if not row.startswith(b"s"):
        return None
    _, size = _STATE.unpack_from(row)
    end = _STATE.size + size
    return row[_STATE.size : end].decode(), _INDEX.unpack_from(row, end)[0]


def timer_row(due_ms: int, key: str) -> bytes:
    """The row that says when a key is woken; big-endian, so rows sort by time."""
    return _DUE.pack(TIMER_PREFIX, max(due_ms, 0)) + key.encode()


def timer_floor(due_ms: int) -> bytes:
    """Sorts before every timer of `due_ms` and after every earlier one."""
    return _DUE.pack(TIMER_PREFIX, max(due_ms, 0))


def parse_timer_row(row: bytes) -> tuple[int, str]:
    """When, and whom."""
    _, due_ms = _DUE.unpack_from(row)
    return due_ms, row[_DUE.size :].decode()


def pushed_row(key: str) -> bytes:
    """The row that holds a timer's time where it is later than the fold asked for."""
    return b"d" + key.encode()


def pack_ms(at_ms: int) -> bytes:
    """The value of a pushed row."""
    return _DUE_MS.pack(at_ms)


def unpack_ms(value: bytes) -> int:
    """The inverse of `pack_ms`."""
    return int(_DUE_MS.unpack(value)[0])
