"""Take a partition over: stable positions, then the target, then the changelog up to it (engine
rules 7 to 9); `streams.restore.start_of` says whether what is on the disk may be used.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streams.lookups import ChangelogFacts
from streams.restore import start_of
from streams.stages import COMMITS
from streams.store import MemoryStore, StoreMark
from streams.ticks import wall_ms
from tests.simulation.groups import Group
from tests.simulation.log import Log
from tests.simulation.process import Call, Nap, Point

if TYPE_CHECKING:
    from tests.simulation.worker import Worker

FACTS = ChangelogFacts("simulated", 24 * 3_600_000)
SLACK_MS = 60_000
_AGAIN_MS = 100
_ROWS_MAX = 30


@dataclass
class Stores:
    """What is on each worker's disk; it outlives the process."""

    on_disk: dict[tuple[str, int], MemoryStore] = field(default_factory=dict)

    def open(self, slot: str, partition: int) -> MemoryStore:
        """The store as the last process left it."""
        return self.on_disk.setdefault((slot, partition), MemoryStore())

    def wipe(self, slot: str) -> None:
        """The disk is gone."""
        for place in [place for place in self.on_disk if place[0] == slot]:
            del self.on_disk[place]


@dataclass
class Taken:
    """A partition that is ready to run."""

    store: MemoryStore
    positions: dict[str, int]
    noted: set[str]
    changelog_next: int


def take_over(
    worker: Worker, log: Log, group: Group, stores: Stores, partition: int
) -> Generator[Point | Nap | Call, Any, Taken | None]:
    """Restore one partition; None if the group moved on meanwhile."""
    generation = group.generation
    while any(group.pending.get((topic, partition)) for topic in COMMITS.sources):
        yield Nap(_AGAIN_MS)  # engine rule 9: only stable positions
        if group.generation != generation:
            return None
    places = {topic: group.committed.get((topic, partition)) for topic in COMMITS.sources}
    positions = {topic: offset or 0 for topic, offset in places.items()}
    place = (COMMITS.changelog, partition)
    target = log.high_watermark(place)
    store, position = _begin(stores, worker.disk, partition, positions, target)
    while position < target:
        yield Point("mid_restore")
        if group.generation != generation:
            return None
        records, after = log.fetch(place, position, _ROWS_MAX)
        if after == position:
            yield Nap(_AGAIN_MS)  # an open transaction stands below the target: wait for its end
            continue
        position = after
        rows = {record.raw_key or b"": record.value for record in records}
        store.write(rows, StoreMark(position, {}, _stamp(store), FACTS.topic_id))
    store.write({}, StoreMark(position, dict(positions), wall_ms(), FACTS.topic_id))
    noted = {topic for topic, offset in places.items() if offset is not None}
    return Taken(store, positions, noted, position)


def _begin(
    stores: Stores, slot: str, partition: int, positions: dict[str, int], target: int
) -> tuple[MemoryStore, int]:
    store = stores.open(slot, partition)
    start, _ = start_of(
        store.mark,
        log_start=0,
        log_end=target,
        facts=FACTS,
        now_ms=wall_ms(),
        slack_ms=SLACK_MS,
    )
    known = store.mark.sources if store.mark is not None else {}
    ahead = any(offset > positions.get(topic, offset) for topic, offset in known.items())
    if start is None or ahead:
        store = stores.on_disk[slot, partition] = MemoryStore()
        return store, 0
    return store, start


def _stamp(store: MemoryStore) -> int:
    return store.mark.stamp_ms if store.mark is not None else wall_ms()
