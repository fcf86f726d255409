"""From assigned to running: committed offsets, changelog bounds, the store, the restore.

The order is fixed (engine rule 9): the producer was initialised before, then stable committed
offsets, then the target, then the restore; only then does a partition run. All of it happens in
small steps on the loop's thread, none of it inside a rebalance callback (engine rule 27).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streams.crashpoints import CrashPoints
from streams.lookups import Lookups
from streams.metrics import LoopMetrics
from streams.restore import Restorer, start_of
from streams.settings import LoopSettings
from streams.store import Store, StoreLocked, StoreMark, store_path
from streams.ticks import wall_ms
from streams.topology import Stage, check_position_note
from tallystick.errors import BrokerUnavailable, OperatorError, SourceTruncated, StateLocked
from tallystick.topics import full_name

_log = logging.getLogger(__name__)

_COMMITTED_S = 1.0
"""One try at committed offsets, which wait for a dead worker's pending transaction. Higher: the
group is not served meanwhile."""

_AGAIN_S = 0.2
"""Pause before offsets and bounds are asked for again. Lower: a broker that just came back is asked
in a tight loop. Higher: takeover waits longer."""

_NOT_YET = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001 - its public name
        KafkaError._TRANSPORT,  # noqa: SLF001 - its public name
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REQUEST_TIMED_OUT,
    }
)


@dataclass(frozen=True, slots=True)
class Ready:
    """A partition that may run: `positions` by short topic name, `noted` those that the group
    already holds."""

    partition: int
    store: Store
    positions: dict[str, int]
    noted: frozenset[str]
    changelog_next: int
    changelog_id: str


@dataclass(slots=True)
class _Waiting:
    """A partition on its way; the fields fill up in the order of engine rule 9."""

    since_s: float
    positions: dict[str, int] | None = None
    noted: frozenset[str] = frozenset()
    log_start: int = 0
    target: int = 0
    store: Store | None = None


class Takeover:
    """The partitions of one loop that are assigned but do not run yet."""

    def __init__(
        self,
        stage: Stage,
        settings: LoopSettings,
        consumer: Consumer,
        lookups: Lookups,
        partitions: int,
        metrics: LoopMetrics,
        crash: CrashPoints,
    ) -> None:
        self._stage = stage
        self._settings = settings
        self._consumer = consumer
        self._lookups = lookups
        self._count = partitions
        self._changelog = full_name(settings.prefix, stage.changelog)
        self._facts = lookups.changelog(self._changelog)
        self._restorer = Restorer(stage, settings, metrics, crash)
        self._waiting: dict[int, _Waiting] = {}
        self._ask_at_s = 0.0

    @property
    def restoring(self) -> bool:
        """Whether a step has rows to read, and so paces itself."""
        return self._restorer.busy

    @property
    def pending(self) -> int:
        """How many partitions do not run yet."""
        return len(self._waiting)

    def add(self, partition: int) -> None:
        """It was assigned."""
        self._waiting[partition] = _Waiting(time.monotonic())

    def drop(self, partition: int) -> bool:
        """It was revoked; returns whether it was still on its way."""
        waiting = self._waiting.pop(partition, None)
        if waiting is None:
            return False
        self._restorer.drop(partition)
        if waiting.store is not None:
            waiting.store.close()
        return True

    def step(self) -> list[Ready]:
        """Do a little; returns the partitions that are ready to run."""
        unplaced = [p for p, waiting in self._waiting.items() if waiting.positions is None]
        if unplaced and not self._place(unplaced):
            return []
        for partition, waiting in self._waiting.items():
            if waiting.store is None:
                self._open(partition, waiting)
        finished = self._restorer.step()
        return [self._ready(partition, after) for partition, after in finished.items()]

    def close(self) -> None:
        """Let stores and connections go."""
        for partition in list(self._waiting):
            self.drop(partition)
        self._restorer.close()

    def _place(self, partitions: list[int]) -> bool:
        """Find where each source goes on; False to try again in a later step."""
        now_s = time.monotonic()
        if now_s < self._ask_at_s:
            return False
        self._ask_at_s = now_s + _AGAIN_S
        try:
            placed = self._ask(partitions)
        except BrokerUnavailable as error:
            _log.warning("takeover waits: %s", error)
            self._lookups.refresh()
            placed = False
        if not placed:
            self._check_patience(partitions)
        else:
            self._ask_at_s = 0.0
        return placed

    def _ask(self, partitions: list[int]) -> bool:
        places = [
            (full_name(self._settings.prefix, topic), partition)
            for partition in partitions
            for topic in self._stage.sources
        ]
        committed = self._committed(places)
        if committed is None:
            return False
        changelogs = [(self._changelog, partition) for partition in partitions]
        starts = self._lookups.starts([*places, *changelogs])
        ends = self._lookups.ends(changelogs)
        for partition in partitions:
            waiting = self._waiting[partition]
            positions, noted = {}, set()
            for topic in self._stage.sources:
                place = (full_name(self._settings.prefix, topic), partition)
                offset = committed.get(place)
                if offset is None:
                    # Only without a committed offset does a source begin at its start.
                    offset = starts[place]
                else:
                    noted.add(topic)
                _check_not_truncated(place, offset, starts[place])
                positions[topic] = offset
            waiting.positions, waiting.noted = positions, frozenset(noted)
            waiting.log_start = starts[self._changelog, partition]
            waiting.target = ends[self._changelog, partition]
        return True

    def _committed(self, places: list[tuple[str, int]]) -> dict[tuple[str, int], int] | None:
        """Stable committed offsets (librdkafka asks for them so under read_committed)."""
        wanted = [TopicPartition(topic, partition) for topic, partition in places]
        try:
            found = self._consumer.committed(wanted, timeout=_COMMITTED_S)
        except KafkaException as error:
            self._check_passing(error.args[0])
            return None
        offsets = {}
        for place in found:
            if place.error is not None:
                self._check_passing(place.error)
                return None
            if place.offset >= 0:
                where = f"group {self._stage.group(self._settings.prefix)}, {place.topic}"
                check_position_note(place.metadata, self._count, where)
                offsets[place.topic, place.partition] = place.offset
        return offsets

    def _check_passing(self, error: KafkaError) -> None:
        if error.code() not in _NOT_YET and not error.retriable():
            raise OperatorError(
                f"committed offsets cannot be read: {error.str()}",
                where=f"group {self._stage.group(self._settings.prefix)}",
                fix="check the group's coordinator and this client's permissions",
            )
        _log.info("committed offsets are not stable yet: %s", error.str())

    def _check_patience(self, partitions: list[int]) -> None:
        oldest_s = min(self._waiting[partition].since_s for partition in partitions)
        if (time.monotonic() - oldest_s) * 1_000 > self._settings.restore_stall_ms:
            raise OperatorError(
                f"no stable committed offsets within {self._settings.restore_stall_ms} ms",
                where=f"group {self._stage.group(self._settings.prefix)}",
                fix="look for hanging transactions (`kafka-transactions.sh find-hanging`)",
            )

    def _open(self, partition: int, waiting: _Waiting) -> None:
        path = store_path(self._settings.state_dir, self._stage.name, partition)
        try:
            store = Store.open_or_wipe(path)
        except StoreLocked as error:
            # Engine rule 25: wait a little for a dying process; then end, without a rebalance
            # loop (failure test 29).
            if (time.monotonic() - waiting.since_s) * 1_000 > self._settings.lock_wait_ms:
                raise StateLocked(
                    "another live process holds this state folder",
                    where=str(path),
                    fix="stop it, or give each worker its own state folder",
                ) from error
            return
        waiting.store = store
        now_ms = wall_ms()
        start, why = start_of(
            store.mark,
            log_start=waiting.log_start,
            log_end=waiting.target,
            facts=self._facts,
            now_ms=now_ms,
            slack_ms=self._settings.poll_gap_ms_max,
        )
        if start is None or self._is_ahead(store.mark, waiting):
            _log.info("%s is rebuilt: %s", path, why or "it is ahead of the group's positions")
            store = waiting.store = store.wiped()
            base = StoreMark(waiting.log_start, {}, now_ms, self._facts.topic_id)
        else:
            stamp_ms = store.mark.stamp_ms if store.mark is not None else now_ms
            base = StoreMark(start, {}, stamp_ms, self._facts.topic_id)
        self._restorer.add(partition, store, base, waiting.target)

    def _is_ahead(self, mark: StoreMark | None, waiting: _Waiting) -> bool:
        """A store may be behind the group's positions, never ahead (engine rule 16)."""
        positions = waiting.positions or {}
        known = mark.sources if mark is not None else {}
        return any(offset > positions.get(topic, offset) for topic, offset in known.items())

    def _ready(self, partition: int, changelog_next: int) -> Ready:
        waiting = self._waiting.pop(partition)
        store, positions = waiting.store, waiting.positions
        if store is None or positions is None:
            raise OperatorError(f"partition {partition} was restored before it was placed")
        if not waiting.noted and not store.is_empty():
            store.close()
            raise OperatorError(
                f"there is state, but the group has no position in partition {partition}: "
                "starting over would fold every record twice",
                where=f"group {self._stage.group(self._settings.prefix)}",
                fix="set the group's offsets by hand; they expire when a group is empty for long",
            )
        mark = StoreMark(changelog_next, positions, wall_ms(), self._facts.topic_id)
        store.write({}, mark)
        return Ready(
            partition, store, positions, waiting.noted, changelog_next, self._facts.topic_id
        )


def _check_not_truncated(place: tuple[str, int], offset: int, log_start: int) -> None:
    """Engine rule 19: records that were lost to retention are not jumped over."""
    if offset < log_start:
        raise SourceTruncated(
            f"the group stands at {offset}, the log begins at {log_start}",
            where=f"{place[0]}[{place[1]}]",
            fix="restore the topic, or accept the loss by setting the group's offset by hand",
        )
