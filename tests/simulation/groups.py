"""A consumer group: members, generations, `range` assignment, committed and pending positions.

An offset commit is fenced by member and generation, not by partition; one with an empty member
and generation -1 is accepted without any fence, as Apache Kafka does (KAFKA-18060).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Place = tuple[str, int]


@dataclass
class Group:
    """One group over co-partitioned topics: a member gets the same partitions of each."""

    name: str
    partitions: int
    generation: int = 0
    members: dict[str, str] = field(default_factory=dict)
    committed: dict[Place, int] = field(default_factory=dict)
    pending: dict[Place, list[Any]] = field(default_factory=dict)
    changed: list[Callable[[], None]] = field(default_factory=list)
    _joined: int = 0

    def join(self, slot: str) -> str:
        """A new member; one that was in the same slot before is out (static membership)."""
        self._joined += 1
        member = f"{slot}-{self._joined}"
        self.members = {name: at for name, at in self.members.items() if at != slot}
        self.members[member] = slot
        self._rebalance()
        return member

    def leave(self, member: str) -> None:
        """It left, or its session timed out."""
        if self.members.pop(member, None) is not None:
            self._rebalance()

    def share(self, member: str) -> set[int]:
        """The partitions of this member in the present generation."""
        ranked = sorted(self.members, key=lambda name: (self.members[name], name))
        if member not in self.members:
            return set()
        each, more = divmod(self.partitions, len(ranked))
        index = ranked.index(member)
        start = index * each + min(index, more)
        return set(range(start, start + each + (index < more)))

    def admits(self, member: str, generation: int) -> bool:
        """Whether an offset commit under this identity is taken."""
        if not member and generation < 0:
            return True
        return member in self.members and generation == self.generation

    def metadata(self, member: str, generation: int) -> bytes:
        """What librdkafka's consumer says of its membership; lost once it knows it is out."""
        head = b"CGMDv2:" + struct.pack("=i", generation)
        return head + self.name.encode() + b"\0" + member.encode() + b"\0"

    def _rebalance(self) -> None:
        self.generation += 1
        for tell in list(self.changed):
            tell()
