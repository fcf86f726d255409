"""What the loop itself logs: ticks, and records that no fold could take."""

from __future__ import annotations

from tallystick.records.base import Record


class Tick(Record):
    """Time as an event: the partition's owner saw the wall clock at `at_ms`."""

    partition: int
    at_ms: int


class DeadLetter(Record):
    """A record that could not be processed, whole, with the reason."""

    stage: str
    source_topic: str
    source_partition: int
    source_offset: int
    key: bytes | None
    value: bytes | None
    code: str
    reason: str
