"""Which offset may be committed while work finishes out of order: never past unfinished work."""

from __future__ import annotations

from dataclasses import dataclass, field

Place = tuple[str, int]


@dataclass
class _Lane:
    """One partition: offsets taken in order, and those already finished above the oldest open."""

    taken: list[int] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)


class LowWater:
    """Tracks records by partition; `advance` gives the offsets below which all is finished."""

    def __init__(self) -> None:
        self._lanes: dict[Place, _Lane] = {}

    def take(self, topic: str, partition: int, offset: int) -> None:
        """Work on this record begins; offsets of one partition come in order."""
        self._lanes.setdefault((topic, partition), _Lane()).taken.append(offset)

    def finish(self, topic: str, partition: int, offset: int) -> None:
        """Work on this record is done; a record of a partition that was dropped is ignored."""
        lane = self._lanes.get((topic, partition))
        if lane is not None:
            lane.finished.add(offset)

    def drop(self, topic: str, partition: int) -> None:
        """The partition went to another owner, who starts at what was committed."""
        self._lanes.pop((topic, partition), None)

    def advance(self) -> dict[Place, int]:
        """The next offset to read for each partition that moved since the last call."""
        moved: dict[Place, int] = {}
        for place, lane in self._lanes.items():
            done = 0
            while done < len(lane.taken) and lane.taken[done] in lane.finished:
                lane.finished.discard(lane.taken[done])
                done += 1
            if done:
                moved[place] = lane.taken[done - 1] + 1
                del lane.taken[:done]
        return moved

    @property
    def open_count(self) -> int:
        """How many records are being worked on."""
        return sum(len(lane.taken) - len(lane.finished) for lane in self._lanes.values())
