"""Rebuild stores from their changelog, step by step, beside the running partitions.

A consumer of its own without a group reads committed records up to a target that was taken as
read_uncommitted (engine rules 7, 28). A partition is done when its *position* has reached the
target: control records and compaction leave gaps at the end of a log (engine rule 8).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import ClassVar

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from streams.crashpoints import CrashPoint, CrashPoints
from streams.lookups import ChangelogFacts
from streams.metrics import LoopMetrics
from streams.settings import LoopSettings
from streams.store import Store, StoreMark
from streams.topology import Stage
from tallystick.errors import OperatorError
from tallystick.topics import full_name

_log = logging.getLogger(__name__)

_POLL_S = 0.02
"""Wait for the first record of a step. Higher: running partitions wait beside a restore."""


class RestoreStalled(OperatorError):
    """A restore stood still: a foreign transaction stays open, or the broker does not answer.

    Look for hanging transactions (`kafka-transactions.sh find-hanging`), then start again. They
    arise on brokers before 3.6, or with partition verification off, since librdkafka speaks the
    older transaction protocol (engine rule 15).
    """

    code: ClassVar[str] = "restore_stalled"
    retryable: ClassVar[bool] = True


def start_of(
    mark: StoreMark | None,
    *,
    log_start: int,
    log_end: int,
    facts: ChangelogFacts,
    now_ms: int,
    slack_ms: int,
) -> tuple[int | None, str]:
    """Where a store goes on reading its changelog; None, with the reason: wipe and rebuild.

    Engine rule 18. `slack_ms` covers a worker that believed it still owned the partition when
    it last stamped its store.
    """
    if mark is None:
        return None, "it is new"
    if facts.topic_id and mark.changelog_id and facts.topic_id != mark.changelog_id:
        return None, "the changelog topic was created anew"
    if mark.changelog_next > log_end:
        return None, f"it is at {mark.changelog_next}, beyond the changelog's end {log_end}"
    if mark.changelog_next < log_start:
        return None, f"it is at {mark.changelog_next}, below the changelog's start {log_start}"
    age_ms = now_ms - mark.stamp_ms
    if not -slack_ms <= age_ms <= facts.delete_retention_ms - slack_ms:
        return None, f"it is {age_ms} ms old, tombstones it has not seen may be gone"
    return mark.changelog_next, ""


@dataclass(slots=True)
class _Job:
    store: Store
    base: StoreMark
    position: int
    target: int
    moved_at_s: float
    rows: int = 0
    staged: dict[bytes, bytes | None] = field(default_factory=dict)


class Restorer:
    """Restores of one loop; never called inside a rebalance callback (engine rule 27)."""

    def __init__(
        self, stage: Stage, settings: LoopSettings, metrics: LoopMetrics, crash: CrashPoints
    ) -> None:
        self._stage = stage
        self._settings = settings
        self._metrics = metrics
        self._crash = crash
        self._topic = full_name(settings.prefix, stage.changelog)
        self._consumer: Consumer | None = None
        self._jobs: dict[int, _Job] = {}

    @property
    def busy(self) -> bool:
        """Whether anything is left to restore."""
        return bool(self._jobs)

    def add(self, partition: int, store: Store, base: StoreMark, target: int) -> None:
        """Read from `base.changelog_next` up to `target`; `base.stamp_ms` stays until the end."""
        moved_at_s = time.monotonic()
        self._jobs[partition] = _Job(store, base, base.changelog_next, target, moved_at_s)
        if base.changelog_next < target:
            self._assign()

    def drop(self, partition: int) -> None:
        """Forget a partition that is no longer ours; what was written so far stays valid."""
        if self._jobs.pop(partition, None) is not None and self._consumer is not None:
            self._assign()

    def step(self) -> dict[int, int]:
        """Read a little; returns the finished partitions with their next changelog offset."""
        if self._consumer is not None and any(
            job.position < job.target for job in self._jobs.values()
        ):
            self._read(self._consumer)
        done = {p: job for p, job in self._jobs.items() if job.position >= job.target}
        for partition, job in done.items():
            del self._jobs[partition]
            self._metrics.restored(self._stage.name, partition, job.rows)
            _log.info("%s[%d] restored: %d rows", self._topic, partition, job.rows)
        if done and self._consumer is not None:
            self._assign()
        self._check_stall()
        return {partition: job.position for partition, job in done.items()}

    def close(self) -> None:
        """Let the connection go."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._jobs.clear()

    def _assign(self) -> None:
        if self._consumer is None:
            self._consumer = self._build()
        self._consumer.assign(
            [
                TopicPartition(self._topic, partition, job.position)
                for partition, job in self._jobs.items()
                if job.position < job.target
            ]
        )

    def _build(self) -> Consumer:
        settings = self._settings
        return Consumer(
            {
                **settings.kafka,
                "bootstrap.servers": settings.bootstrap,
                # Engine rule 28: never joined and never committed to; the client wants a name.
                "group.id": f"{self._stage.group(settings.prefix)}-restore",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",  # engine rule 7: records, not the target
                "enable.partition.eof": True,  # engine rule 8
                "auto.offset.reset": "error",
                "fetch.error.backoff.ms": 50,
                "fetch.queue.backoff.ms": 20,
            },
            logger=_log,
        )

    def _read(self, consumer: Consumer) -> None:
        first = consumer.poll(_POLL_S)
        messages = [] if first is None else [first]
        if messages:
            messages += consumer.consume(self._settings.restore_records_max - 1, 0)
        for message in messages:
            job = self._jobs.get(message.partition() or 0)
            if job is not None:
                self._take(job, message)
        for job in self._jobs.values():
            if job.staged or job.base.changelog_next != job.position:
                self._write(job)

    def _take(self, job: _Job, message: Message) -> None:
        error, offset = message.error(), message.offset() or 0
        if error is None:
            row, value = _row(message)
            job.staged[row] = value
            job.rows += 1
            self._move(job, offset + 1)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            # Engine rule 8: the position counts, not the last record; below the target (another
            # worker's open transaction) the restore goes on waiting.
            self._move(job, offset)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its public name
            raise RestoreStalled(
                f"the changelog moved under the restore: {error.str()}",
                where=f"{self._topic}[{message.partition()}]",
                fix="start again",
            )
        else:
            _log.warning("restore of %s: %s", self._topic, error.str())

    def _move(self, job: _Job, position: int) -> None:
        if position > job.position:
            job.position = position
            job.moved_at_s = time.monotonic()

    def _write(self, job: _Job) -> None:
        mark = StoreMark(job.position, {}, job.base.stamp_ms, job.base.changelog_id)
        job.store.write(job.staged, mark)
        job.base = mark
        job.staged = {}
        self._crash.reach(CrashPoint.MID_RESTORE)

    def _check_stall(self) -> None:
        """Engine rule 8: no progress for too long fails loudly."""
        now_s = time.monotonic()
        for partition, job in self._jobs.items():
            if (now_s - job.moved_at_s) * 1_000 > self._settings.restore_stall_ms:
                raise RestoreStalled(
                    f"no progress for {self._settings.restore_stall_ms} ms at {job.position} "
                    f"of {job.target}",
                    where=f"{self._topic}[{partition}]",
                    fix="an open foreign transaction blocks it; see "
                    "`kafka-transactions.sh find-hanging`, then start again",
                )


def _row(message: Message) -> tuple[bytes, bytes | None]:
    key, value = message.key(), message.value()
    row = key.encode() if isinstance(key, str) else key or b""
    return row, value.encode() if isinstance(value, str) else value
