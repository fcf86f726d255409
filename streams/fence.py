"""The fence of every commit: which group generation this worker belongs to.

Brokers accept a transactional offset commit with an empty member and generation -1 without any
fence, by design (KAFKA-18060). So the metadata is read for each batch on the consumer's own
thread and refused here before the broker is asked (engine rule 3).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

from tallystick.errors import InvariantBroken, TallyError

_MAGIC = b"CGMDv2:"
_GENERATION = struct.Struct("=i")  # librdkafka writes its own int32 in native byte order
_STRINGS_MIN = 2


class FenceLost(TallyError):
    """This worker is no live member of its group: the batch is aborted and read again."""

    code: ClassVar[str] = "fence_lost"
    retryable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class GroupFence:
    """A membership as librdkafka sees it; `generation` is -1 when there is none."""

    group: str
    member: str
    generation: int

    @property
    def held(self) -> bool:
        """Whether an offset commit under it is fenced by the broker at all."""
        return self.generation >= 0 and bool(self.member)


def parse_fence(metadata: bytes) -> GroupFence:
    """Read what `Consumer.consumer_group_metadata()` returns; raises InvariantBroken if unknown."""
    head = len(_MAGIC) + _GENERATION.size
    strings = metadata[head:].split(b"\0")
    if not metadata.startswith(_MAGIC) or len(metadata) < head or len(strings) <= _STRINGS_MIN:
        raise InvariantBroken(
            f"group metadata has an unknown form: {metadata[:32]!r}",
            where="fence",
            fix="this librdkafka is too new or too old; use the versions in the lock file",
        )
    (generation,) = _GENERATION.unpack_from(metadata, len(_MAGIC))
    group, member = strings[0].decode(), strings[1].decode()
    return GroupFence(group=group, member=member, generation=generation)


def require_fence(metadata: bytes) -> bytes:
    """Return `metadata` if it names a live membership, else raise FenceLost (engine rule 3)."""
    fence = parse_fence(metadata)
    if not fence.held:
        raise FenceLost(
            f"no live membership (generation {fence.generation}, member {fence.member!r})",
            where=f"group {fence.group}",
            fix="the batch is read again after the next rebalance",
        )
    return metadata
