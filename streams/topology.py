"""What a stage is: co-partitioned inputs, one key, one fold; and the check that topics fit.

A stage's partition p is one unit: p of every input, of its ticks and of its changelog belong to
one worker at a time. That holds only while all of them have the same number of partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from processors.step import Fold
from tallystick.errors import TopicMismatch
from tallystick.topics import Topic, full_name


@dataclass(frozen=True, slots=True)
class Stage:
    """One sub-topology; topic names are without prefix.

    `outputs` get their records on the source's partition, `spread_outputs` by the record's key.
    """

    name: str
    inputs: tuple[str, ...]
    ticks: str
    changelog: str
    outputs: tuple[str, ...]
    fold: Fold[Any]
    spread_outputs: tuple[str, ...] = ()
    dead_letters: str = Topic.DEAD_LETTERS

    @property
    def sources(self) -> tuple[str, ...]:
        """Everything that the stage consumes."""
        return (*self.inputs, self.ticks)

    @property
    def co_partitioned(self) -> tuple[str, ...]:
        """Everything that must have the same number of partitions."""
        return (*self.sources, self.changelog, *self.outputs)

    def all_topics(self, prefix: str) -> set[str]:
        """The full name of every topic that must exist."""
        topics = (*self.co_partitioned, *self.spread_outputs, self.dead_letters)
        return {full_name(prefix, topic) for topic in topics}

    def group(self, prefix: str) -> str:
        """The consumer group that shares this stage."""
        return f"{prefix}{self.name}"

    def transactional_id(self, prefix: str, slot: str) -> str:
        """Stable for a worker slot, so a restart aborts what the dead one left (engine rule 5)."""
        return f"{prefix}{self.name}-{slot}"

    def describe(self) -> str:
        """The stage as text, one arrow a line."""
        lines = [f"stage {self.name}"]
        lines += [f"  <- {topic}" for topic in self.inputs]
        lines += [f"  <> {self.ticks} (time, written and read by the partition's owner)"]
        lines += [f"  <> {self.changelog} (state, compacted)"]
        lines += [f"  -> {topic}" for topic in self.outputs]
        lines += [f"  -> {topic} (by its own key)" for topic in self.spread_outputs]
        lines += [f"  -> {self.dead_letters} (what could not be folded)"]
        return "\n".join(lines)


def check_partitions(stage: Stage, prefix: str, counts: Mapping[str, int]) -> int:
    """The stage's partition count; raises TopicMismatch if topics lack or differ.

    `counts` is by full topic name. A differing count would send the records of one key to
    different workers (failure test 31).
    """
    missing = sorted(stage.all_topics(prefix) - set(counts))
    if missing:
        raise TopicMismatch(
            f"topics do not exist: {', '.join(missing)}",
            where=f"stage {stage.name}",
            fix="run `tallystick topics create`, or correct the prefix",
        )
    sizes = {
        full_name(prefix, topic): counts[full_name(prefix, topic)] for topic in stage.co_partitioned
    }
    if len(set(sizes.values())) != 1:
        told = ", ".join(f"{name}={size}" for name, size in sorted(sizes.items()))
        raise TopicMismatch(
            f"topics of one stage must have the same number of partitions: {told}",
            where=f"stage {stage.name}",
            fix="a key would live in two places; restore the count, or move to a new prefix",
        )
    return next(iter(sizes.values()))


_COUNT = "tally partitions="


def position_note(partitions: int) -> str:
    """Metadata of every offset commit: the count that keys were placed by."""
    return f"{_COUNT}{partitions}"


def check_position_note(note: str | None, partitions: int, where: str) -> None:
    """Raise TopicMismatch if a committed position was made under another partition count.

    Topics can be raised all together, which no comparison among them shows; keys would then be
    looked for in partitions that never held their state (failure test 31).
    """
    if note and note.startswith(_COUNT) and note != position_note(partitions):
        raise TopicMismatch(
            f"positions were committed with {note.removeprefix(_COUNT)} partitions, "
            f"now there are {partitions}",
            where=where,
            fix="partitions cannot be added in place; move to a new prefix and replay",
        )
