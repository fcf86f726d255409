"""Every input is folded once and in order, and folding the log again gives the same bytes: the
same rows as the changelog holds, and the same outputs.

The order of folding is the one that committed. It is noted for each part of a tick, because a
tick that needs several transactions may be interrupted by a takeover between them.
"""

from __future__ import annotations

from streams.metrics import NoMetrics
from streams.outputs import Output
from streams.source import Cause, LogRecord
from streams.stages import COMMITS
from streams.store import MemoryStore, StoreMark
from streams.task import PartitionTask
from tests.simulation.auditor.case import Case
from tests.simulation.log import Folded, Place


class _Kept:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    def send(self, output: Output, cause: Cause) -> None:
        """See Sink."""
        del cause
        self.outputs.append(output)


def check(case: Case) -> list[str]:
    """What was folded twice, out of order or not at all, and what a replay gives otherwise."""
    by_place = {
        (str(topic), number): case.log.committed((str(topic), number))
        for topic in COMMITS.sources
        for number in range(case.log.partitions)
    }
    faults = _order(case, by_place)
    return faults or _replay(case, by_place)


def _order(case: Case, by_place: dict[Place, list[LogRecord]]) -> list[str]:
    taken: dict[Place, list[int]] = {place: [] for place in by_place}
    for folded in case.log.consumed:
        if folded.whole:
            taken[folded.place].append(folded.offset)
    return [
        f"{place[0]}[{place[1]}]: {len(records)} records, folded {len(taken[place])}, "
        "not each of them once and in order"
        for place, records in by_place.items()
        if taken[place] != [record.offset for record in records]
    ]


def _replay(case: Case, by_place: dict[Place, list[LogRecord]]) -> list[str]:
    kept = _Kept()
    stores = [MemoryStore() for _ in range(case.log.partitions)]
    tasks = [
        PartitionTask(COMMITS, number, store, case.codec, kept, NoMetrics(), 100)
        for number, store in enumerate(stores)
    ]
    at = {(place, r.offset): r for place, records in by_place.items() for r in records}
    for folded in case.log.consumed:
        _fold(tasks[folded.place[1]], at[folded.place, folded.offset], folded)
    for task in tasks:
        task.commit(StoreMark(0, {}, 0, ""), lambda: None)
    return [*_rows(case, [store.rows for store in stores]), *_outputs(case, kept.outputs)]


def _fold(task: PartitionTask, record: LogRecord, folded: Folded) -> None:
    if folded.woken is None:
        task.fold(record)
    elif folded.woken:
        task.wake(record, folded.woken, lambda _: None)


def _rows(case: Case, replayed: list[dict[bytes, bytes]]) -> list[str]:
    faults = []
    for number, again in enumerate(replayed):
        rows: dict[bytes | None, bytes] = {}
        for record in case.log.committed((COMMITS.changelog, number)):
            if record.value is None:
                rows.pop(record.raw_key, None)
            else:
                rows[record.raw_key] = record.value
        if rows != again:
            faults.append(f"partition {number}: a replay gives other state than the changelog has")
    return faults


def _outputs(case: Case, replayed: list[Output]) -> list[str]:
    told: dict[str, list[tuple[bytes | None, bytes | None]]] = {}
    for output in replayed:
        told.setdefault(str(output.topic), []).append((output.key, output.value))
    faults = []
    for topic in (*COMMITS.outputs, *COMMITS.spread_outputs, COMMITS.dead_letters):
        logged = [
            (record.raw_key, record.value)
            for number in range(case.log.partitions)
            for record in case.log.committed((topic, number))
        ]
        again = told.get(str(topic), [])
        if sorted(map(repr, logged)) != sorted(map(repr, again)):
            faults.append(f"{topic}: {len(logged)} records, a replay gives {len(again)} others")
    return faults
