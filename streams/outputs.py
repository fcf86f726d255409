"""What a transaction produces, and the port that takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from streams.source import Cause, Header


@dataclass(frozen=True, slots=True)
class Output:
    """A record to produce; `topic` is without prefix, `partition` None leaves it to the key."""

    topic: str
    key: bytes
    value: bytes | None
    headers: list[Header] = field(default_factory=list)
    partition: int | None = None


class Sink(Protocol):
    """Where outputs go."""

    def send(self, output: Output, cause: Cause) -> None:
        """Produce it in the open transaction; a failure is attributed to `cause`."""


class Transaction(Sink, Protocol):
    """A sink that is opened before it is written to."""

    def begin(self) -> None:
        """Open a transaction if none is open."""
