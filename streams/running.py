"""A partition that runs: its task, its store, and where it stands in every log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import TopicPartition

from streams.store import RowStore, StoreMark
from streams.task import PartitionTask
from streams.ticks import TickGate, wall_ms
from streams.topology import Stage, position_note
from tallystick.topics import full_name


@dataclass(slots=True)
class Running:
    """`positions` are those that the group holds or, where it has none yet (`noted`), begins at."""

    task: PartitionTask
    store: RowStore
    gate: TickGate
    positions: dict[str, int]
    noted: set[str]
    changelog_next: int
    changelog_id: str

    def commits(
        self, stage: Stage, prefix: str, partitions: int, moved: dict[str, int]
    ) -> list[TopicPartition]:
        """The positions that a transaction on this partition commits.

        Never none: the offset commit is what carries the fence, so a transaction that moved
        nothing repeats the ticks position (engine rule 2).
        """
        topics = [topic for topic in stage.sources if topic in moved or topic not in self.noted]
        note = position_note(partitions)
        return [
            TopicPartition(
                full_name(prefix, topic),
                self.task.partition,
                moved.get(topic, self.positions[topic]),
                note,
            )
            for topic in topics or [stage.ticks]
        ]

    def settle(
        self, moved: dict[str, int], changelog_next: int | None, halfway: Callable[[], None]
    ) -> None:
        """After the commit returned: one local batch of rows and positions (engine rule 16)."""
        positions = {**self.positions, **moved}
        reached = self.changelog_next if changelog_next is None else changelog_next
        # Noted here only once it is written: a later stamp must not claim rows that are missing.
        self.task.commit(self._mark(reached, positions), halfway)
        self.positions, self.changelog_next = positions, reached
        self.noted.update(positions)

    def stamp(self) -> None:
        """Note that the store is current now (engine rule 18)."""
        mark = self._mark(self.changelog_next, self.positions)
        self.store.write({}, mark, lambda: None)

    def _mark(self, changelog_next: int, positions: dict[str, int]) -> StoreMark:
        return StoreMark(changelog_next, dict(positions), wall_ms(), self.changelog_id)
