"""What one transaction takes from the queue: records to fold, keys to wake, ticks to log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.headers import output_headers, output_id
from streams.metrics import LoopMetrics
from streams.outputs import Output, Transaction
from streams.quarantine import Quarantine
from streams.running import Running
from streams.settings import LoopSettings
from streams.source import Cause, Flaw, LogRecord
from streams.ticks import LogClock
from streams.topology import Stage
from tallystick.codec import Codec
from tallystick.records import Tick

_SHARE_OF_TIMEOUT = 4
"""A batch is closed after this part of the transaction timeout (engine rule 6). Lower: slow folds
outlive their transaction."""


@dataclass(slots=True)
class Batch:
    """What is in the open transaction; `units` counts records and woken keys."""

    moved: dict[int, dict[str, int]] = field(default_factory=dict)
    buried: list[Cause] = field(default_factory=list)
    units: int = 0
    started_s: float = field(default_factory=time.monotonic)


class Filler:
    """Fills transactions; whatever a record raises comes out, with the transaction open."""

    def __init__(
        self,
        stage: Stage,
        settings: LoopSettings,
        codec: Codec,
        transaction: Transaction,
        quarantine: Quarantine,
        running: Mapping[int, Running],
        metrics: LoopMetrics,
    ) -> None:
        self._stage = stage
        self._settings = settings
        self._codec = codec
        self._transaction = transaction
        self._quarantine = quarantine
        self._running = running
        self._metrics = metrics
        self._clock = LogClock()

    def fill(self, batch: Batch, queue: deque[LogRecord]) -> None:
        """Take from the head of the queue what one transaction holds, then log its rows.

        A tick with more due keys than fit stays at the head, its offset uncommitted, and nothing
        behind it is folded before it is done: batch sizes never change the order of folding.
        """
        units_max = 1 if self._quarantine.alone else self._settings.batch_records_max
        until_s = batch.started_s + (
            self._settings.transaction_timeout_ms / 1_000 / _SHARE_OF_TIMEOUT
        )
        while queue and batch.units < units_max:
            record = queue[0]
            self._transaction.begin()
            moved = batch.moved.setdefault(record.partition, {})
            if not self._take(record, batch, units_max - batch.units):
                break
            queue.popleft()
            moved[record.topic] = record.offset + 1
            if time.monotonic() > until_s:
                break
        for partition in batch.moved:
            self._running[partition].task.log_rows()

    def wait_s(self) -> float:
        """How long the next poll may wait: until the next tick is due, or the poll's own bound."""
        wait_s = self._settings.poll_ms_max / 1_000
        now_ms = self._clock.now_ms()
        for run in self._running.values():
            due_s = run.gate.wait_s(run.task.earliest_due_ms(), now_ms)
            if due_s is not None:
                wait_s = min(wait_s, due_s)
        return wait_s

    def _take(self, record: LogRecord, batch: Batch, room: int) -> bool:
        """Process one record; False if it must stay at the head of the queue."""
        run = self._running[record.partition]
        is_tick = record.topic == self._stage.ticks
        mark = self._quarantine.mark_of(record.cause)
        flaw = record.flaw or (mark.flaw if mark is not None else None)
        if flaw is None and is_tick and isinstance(record.record, Tick):
            return self._wake(run, record, record.record, batch, room)
        batch.units += 1
        if flaw is None and is_tick:
            flaw = Flaw("not_a_tick", f"the ticks topic holds a {type(record.record).__name__}")
        if flaw is None:
            run.task.fold(record)
            return True
        run.task.bury(record, flaw, whole=mark is None or mark.whole)
        batch.buried.append(record.cause)
        if is_tick:
            run.gate.came_back()
        return True

    def _wake(self, run: Running, record: LogRecord, tick: Tick, batch: Batch, room: int) -> bool:
        earliest_ms = run.task.earliest_due_ms()
        if earliest_ms is not None and earliest_ms <= record.at_ms:
            self._metrics.ticked(self._stage.name, record.at_ms - earliest_ms)

        def flawed(cause: Cause) -> Flaw | None:
            mark = self._quarantine.mark_of(cause)
            if mark is None:
                return None
            batch.buried.append(cause)
            return mark.flaw

        keys_max = min(self._settings.wakes_max, room)
        woken = run.task.wake(record, keys_max, flawed)
        batch.units += max(woken, 1)
        if woken == keys_max:
            return False
        self._clock.learn(tick.at_ms, record.at_ms)
        run.gate.came_back()
        return True

    def log_ticks(self, batch: Batch) -> None:
        """Log a tick where a key is due: in a transaction with offsets, so only the partition's
        owner can (engine rules 2, 22)."""
        now_ms = self._clock.now_ms()
        for partition, run in self._running.items():
            if run.gate.wait_s(run.task.earliest_due_ms(), now_ms) != 0.0:
                continue
            at_ms = self._clock.wall_ms()
            topic = self._stage.ticks
            value, codec_headers = self._codec.encode(topic, Tick(partition=partition, at_ms=at_ms))
            headers = output_headers(
                topic=topic,
                stage=self._stage.name,
                event_id=output_id(Cause(topic, partition, at_ms), "tick", 0),
                at_ms=at_ms,
                codec_headers=codec_headers,
                traceparent=None,
            )
            output = Output(topic, str(partition).encode(), value, headers, partition)
            self._transaction.send(output, Cause(topic, partition, -1))
            batch.moved.setdefault(partition, {})
            run.gate.sent()
