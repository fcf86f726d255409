"""The simulated worker: `streams.loop`'s order of steps, around the production parts.

`PartitionTask`, `Filler`, `Quarantine`, `Running`, `TickGate`, `LogClock` and the fence check are
the real ones. Poll, rebalance and the transaction's calls are this file's, because the real ones
hold a Kafka client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streams.fence
from streams.batch import Batch, Filler
from streams.metrics import NoMetrics
from streams.quarantine import Quarantine
from streams.running import Running
from streams.settings import LoopSettings
from streams.source import Cause, Flaw, LogRecord
from streams.stages import COMMITS
from streams.task import FoldFailed, PartitionTask
from streams.ticks import TickGate
from tallystick.topics import short_name
from tests.simulation.clock import Clock
from tests.simulation.dice import Dice
from tests.simulation.log import Folded, Log, Place, Refused
from tests.simulation.process import Crashed, Nap, Point, Process, Task
from tests.simulation.producer import SimProducer
from tests.simulation.takeover import Stores, Taken, take_over

PREFIX = "tally."
ABORT_PAUSE_MS = 100
_FETCH_MAX = 20


def settings_of(batch_records_max: int, wakes_max: int) -> LoopSettings:
    """The loop's settings; a poll waits for as long as there is nothing to do."""
    return LoopSettings(
        bootstrap="simulated",
        slot="simulated",
        state_dir=Path("unused"),
        batch_records_max=batch_records_max,
        wakes_max=wakes_max,
        poll_ms_max=1 << 50,
    )


class WatchedTask(PartitionTask):
    """The production task, which also notes for the auditor what it took, in which order."""

    def __init__(self, folded: list[Folded], *rest: Any) -> None:
        super().__init__(*rest)
        self._folded = folded

    def fold(self, record: LogRecord) -> None:
        """See PartitionTask."""
        super().fold(record)
        self._folded.append(
            Folded((record.topic, record.partition), record.offset, woken=None, whole=True)
        )

    def wake(self, tick: LogRecord, keys_max: int, flawed: Callable[[Cause], Flaw | None]) -> int:
        """See PartitionTask."""
        woken = super().wake(tick, keys_max, flawed)
        place = (tick.topic, tick.partition)
        self._folded.append(Folded(place, tick.offset, woken, whole=woken < keys_max))
        return woken


class Worker(Process):
    """One worker process of the commits stage."""

    def __init__(
        self,
        slot: str,
        clock: Clock,
        dice: Dice,
        log: Log,
        stores: Stores,
        settings: LoopSettings,
        disk: str = "",
    ) -> None:
        super().__init__("worker", slot, clock, dice, set(COMMITS.sources))
        self._log = log
        self._stores = stores
        self._settings = settings
        self._running: dict[int, Running] = {}
        self._queue: deque[LogRecord] = deque()
        self._fetched: dict[Place, int] = {}
        self._folded: list[Folded] = []
        self.disk = disk or slot

    def lost(self) -> None:
        """Memory is gone; stores stay on the disk, unless that is gone as well."""
        if self.dice.fault("disk_lost", 0.1):
            self._stores.wipe(self.disk)

    def main(self) -> Task:
        """Join, then poll, fold and commit for ever."""
        self._running, self._queue = {}, deque()
        self._quarantine = Quarantine()
        self._producer = SimProducer(self._log, f"{PREFIX}{COMMITS.name}-{self.slot}")
        self._filler = Filler(
            COMMITS,
            self._settings,
            self._log.codec,
            self._producer,
            self._quarantine,
            self._running,
            NoMetrics(),
        )
        self._producer.start()
        group = self._log.groups[COMMITS.name]
        self.join(group)
        seen = -1
        while True:
            if group.generation != seen or self.member not in group.members:
                if self.member not in group.members:
                    self.join(group)
                seen = self.generation = group.generation
                # Eager: every rebalance takes everything away first (engine rule 26).
                self._running.clear()
                self._queue.clear()
                yield from self._take_over(seen)
                continue
            self._poll()
            if self._queue or self._filler.wait_s() == 0.0:
                yield Point("after_poll")
                yield from self._transact()
            else:
                yield Nap(self._wait_ms())

    def _wait_ms(self) -> int | None:
        wait_s = self._filler.wait_s()
        return None if wait_s > 1 << 40 else int(wait_s * 1_000) + 1

    def _take_over(self, generation: int) -> Task:
        """Restore what is newly ours; a rebalance meanwhile begins again."""
        group = self._log.groups[COMMITS.name]
        for number in sorted(group.share(self.member)):
            if number in self._running or group.generation != generation:
                continue
            taken = yield from take_over(self, self._log, group, self._stores, number)
            if taken is not None and group.generation == generation:
                self._running[number] = self._run(number, taken)

    def _run(self, number: int, taken: Taken) -> Running:
        task = WatchedTask(
            self._folded,
            COMMITS,
            number,
            taken.store,
            self._log.codec,
            self._producer,
            NoMetrics(),
            self.dice.pick("cache", (1, 1_000)),
        )
        for topic, offset in taken.positions.items():
            self._fetched[topic, number] = offset
        return Running(
            task=task,
            store=taken.store,
            gate=TickGate(self._settings.tick_gap_ms),
            positions=taken.positions,
            noted=taken.noted,
            changelog_next=taken.changelog_next,
            changelog_id="simulated",
        )

    def _poll(self) -> None:
        """Fetch what is there, topics in an order that no reader may rely on."""
        places = [(t, number) for number in self._running for t in COMMITS.sources]
        first = self.dice.between("poll", 0, max(len(places) - 1, 0))
        for place in (*places[first:], *places[:first]):
            position = self._fetched[place]
            if position >= self._log.place(place).end:
                continue
            records, self._fetched[place] = self._log.fetch(place, position, _FETCH_MAX)
            self._queue += records

    def _transact(self) -> Task:
        batch = Batch(started_s=self.clock.now_ms / 1_000)
        self._folded.clear()
        try:
            self._filler.fill(batch, self._queue)
            self._filler.log_ticks(batch)
            if self._producer.txn is not None:
                yield from self._commit(batch)
        except FoldFailed as failed:
            self._quarantine.blame(failed.cause, failed.flaw)
            self.folds_failed(failed.flaw)
            self._rewind()
        except (streams.fence.FenceLost, Refused) as refused:
            self.dice.faults[f"aborted_{type(refused).__name__.lower()}"] += 1
            self._rewind()
            yield Nap(ABORT_PAUSE_MS)

    def folds_failed(self, flaw: Flaw) -> None:
        """A fold raised: no simulated input may bring that about."""
        raise AssertionError(f"a fold raised: {flaw.reason}")

    def _commit(self, batch: Batch) -> Task:
        """The order of `StageLoop._commit`."""
        yield Point("after_produce")
        fence = streams.fence.parse_fence(streams.fence.require_fence(self.metadata))
        yield Point("before_send_offsets")
        offsets = {
            (short_name(PREFIX, place.topic), place.partition): place.offset
            for partition, moved in batch.moved.items()
            for place in self._running[partition].commits(
                COMMITS, PREFIX, self._log.partitions, moved
            )
        }
        self.maybe_refuse("commit_refused")
        self._producer.send_offsets(COMMITS.name, (fence.member, fence.generation), offsets)
        yield Point("after_send_offsets")
        changelog_next = dict(self._producer.changelog_next)
        self._producer.commit(list(self._folded))
        yield Point("after_commit")
        for partition, moved in batch.moved.items():
            run = self._running[partition]
            run.settle(moved, changelog_next.get(partition), self._halfway)
        self._quarantine.settle(batch.buried, batch.units)
        yield Point("after_store_write")

    def _halfway(self) -> None:
        if self.troubled and self.dice.fault("crash@worker.mid_store_write", 0.005):
            raise Crashed

    def _rewind(self) -> None:
        self._producer.abort()
        self._queue.clear()
        for number, run in self._running.items():
            run.task.discard()
            run.gate.came_back()
            for topic, offset in run.positions.items():
                self._fetched[topic, number] = offset
