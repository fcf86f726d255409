"""The shape of every fold: given a key's state and a record, the next state and what to emit.

A fold has no clock, no randomness, no environment and no files; `at_ms` is the log's own time
(milliseconds since the epoch, stamped by the broker on append), so replay gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tallystick.records import Record
from tallystick.topics import Topic

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Emit:
    """A record to produce; it goes to the source's partition unless `spread` by its own key."""

    topic: Topic
    key: str
    record: Record
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """What one record did: the key's next state (None: forget the key) and its emissions."""

    state: S | None
    emits: tuple[Emit, ...] = ()


class Fold(Protocol[S]):
    """A stage's pure heart; the loop around it owns offsets, transactions and stores."""

    def apply(self, key: str, state: S | None, record: Record, at_ms: int) -> Step[S]:
        """Fold one input record of this key."""

    def wake(self, key: str, state: S, at_ms: int) -> Step[S]:
        """Fold a timer: `due_ms(state)` is not later than `at_ms`."""

    def due_ms(self, state: S) -> int | None:
        """When this key wants to be woken (log time), or None."""

    def pack(self, state: S) -> tuple[bytes, ...]:
        """The state as rows that change at different rates; an unchanged row is not rewritten."""

    def unpack(self, rows: tuple[bytes, ...]) -> S:
        """The inverse of `pack`."""
