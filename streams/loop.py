"""The loop of one stage: poll, fold, commit; exactly once by one transaction a batch.

Rules of this file (engine rules, part a): a batch's outputs, rows and positions share one
transaction (1); it begins with the first record and not before (14); every one carries offsets
under a live fence (2, 3); none is open while callbacks may fire (4); local rows follow the commit
(16); after an abort nothing local has changed and every partition is sought back (10, 13).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from streams.batch import Batch, Filler
from streams.crashpoints import CrashPoint, CrashPoints, NoCrash
from streams.fence import FenceLost, parse_fence, require_fence
from streams.intake import Intake, check_closed
from streams.lookups import Lookups
from streams.metrics import LoopMetrics, NoMetrics
from streams.quarantine import Quarantine
from streams.running import Running
from streams.settings import LoopSettings
from streams.takeover import Ready, Takeover
from streams.task import FoldFailed, PartitionTask
from streams.ticks import TickGate
from streams.topology import Stage, check_partitions
from streams.transaction import TransactionAborted, TransactionalProducer, TransactionFatal
from streams.watchdog import Watchdog
from tallystick.codec import Codec

_log = logging.getLogger(__name__)

_LEAVE_S = 3.0
"""Longest wait for the last revoke on a clean stop. Lower: the group learns of it by timeout."""

_TAKEOVER_POLL_S = 0.02
"""Longest poll while a partition waits for its offsets or its store. Higher: takeover is slower."""

_LEAVE_POLL_S = 0.05
"""One look at the group while leaving."""


class StageLoop:
    """One stage in one thread; `stop` ends it after the current batch."""

    def __init__(
        self,
        stage: Stage,
        settings: LoopSettings,
        codec: Codec,
        *,
        stop: threading.Event,
        watchdog: Watchdog,
        metrics: LoopMetrics | None = None,
        crash: CrashPoints | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        self._stage = stage
        self._settings = settings
        self._codec = codec
        self._stop = stop
        self._metrics = metrics or NoMetrics()
        self._crash = crash or NoCrash()
        self._running: dict[int, Running] = {}
        self._lookups = Lookups(settings)
        counts = self._lookups.partition_counts_with(stage.all_topics(settings.prefix))
        self._partitions = check_partitions(stage, settings.prefix, counts)
        self._producer = TransactionalProducer(
            stage.transactional_id(settings.prefix, settings.slot),
            settings,
            watchdog,
            changelog=stage.changelog,
        )
        self._intake = Intake(stage, settings, codec, self._assigned, self._dropped)
        self._takeover = Takeover(
            stage,
            settings,
            self._intake.consumer,
            self._lookups,
            self._partitions,
            self._metrics,
            self._crash,
        )
        self._quarantine = Quarantine()
        self._filler = Filler(
            stage, settings, codec, self._producer, self._quarantine, self._running, self._metrics
        )
        self._stamped_at_s = time.monotonic()
        self._on_ready = on_ready
        self._joined = False

    def run(self) -> None:
        """Run until stopped; raises what must end the process (see `worker.py`)."""
        try:
            self._producer.start()  # engine rule 9: before any committed offset is read
            self._intake.subscribe()
            while not self._stop.is_set():
                self._turn()
            self._leave()
        finally:
            self._close()

    def _turn(self) -> None:
        check_closed(self._producer.is_open)
        room = self._settings.batch_records_max - len(self._intake.queue)
        self._intake.poll(self._wait_s(), room)
        if self._takeover.pending:
            for ready in self._takeover.step():
                self._start(ready)
        self._say_ready()
        if self._intake.queue or self._filler.wait_s() == 0.0:
            self._transact()
        else:
            self._stamp_idle()

    def _wait_s(self) -> float:
        if self._intake.queue or self._takeover.restoring:
            return 0.0
        wait_s = self._filler.wait_s()
        return min(wait_s, _TAKEOVER_POLL_S) if self._takeover.pending else wait_s

    def _transact(self) -> None:
        batch = Batch()
        try:
            self._filler.fill(batch, self._intake.queue)
            self._filler.log_ticks(batch)
            if self._producer.is_open:
                self._commit(batch)
        except FoldFailed as failed:
            self._quarantine.blame(failed.cause, failed.flaw)
            self._abort("fold_failed", str(failed), 0)
        except FenceLost as lost:
            # Engine rule 11: abort, poll again, go on; ending would fence the peers in turn.
            self._abort(lost.code, str(lost), self._settings.abort_pause_ms)
        except TransactionAborted as aborted:
            self._give_up(aborted, batch)
        except TransactionFatal as fatal:
            if not fatal.expired:
                raise
            _log.warning("%s", fatal)
            self._producer.restart()  # engine rule 14
            self._rewind()

    def _commit(self, batch: Batch) -> None:
        self._crash.reach(CrashPoint.AFTER_PRODUCE)
        # Engine rule 3: read on this thread, for this batch, and refused unless it is live.
        fence = require_fence(self._intake.consumer.consumer_group_metadata())
        self._crash.reach(CrashPoint.BEFORE_SEND_OFFSETS)
        offsets = [
            place
            for partition, moved in batch.moved.items()
            for place in self._running[partition].commits(
                self._stage, self._settings.prefix, self._partitions, moved
            )
        ]
        self._producer.send_offsets(offsets, fence)
        self._crash.reach(CrashPoint.AFTER_SEND_OFFSETS)
        changelog_next = self._producer.commit()
        self._crash.reach(CrashPoint.AFTER_COMMIT)
        for partition, moved in batch.moved.items():
            self._running[partition].settle(
                moved,
                changelog_next.get(partition),
                lambda: self._crash.reach(CrashPoint.MID_STORE_WRITE),
            )
        self._crash.reach(CrashPoint.AFTER_STORE_WRITE)
        self._quarantine.settle(batch.buried, batch.units)
        self._count(batch)

    def _count(self, batch: Batch) -> None:
        self._metrics.folded(self._stage.name, batch.units)
        self._metrics.committed(self._stage.name, time.monotonic() - batch.started_s)
        for _ in batch.buried:
            self._metrics.dead_lettered(self._stage.name, "buried")

    def _give_up(self, aborted: TransactionAborted, batch: Batch) -> None:
        """Abort; a refused output is its source's fault, everything else the moment's."""
        pause_ms = 0 if aborted.refused else self._settings.abort_pause_ms
        self._abort(aborted.cause, str(aborted), pause_ms)
        if aborted.refused:
            self._quarantine.refuse(aborted.refused, str(aborted), batch.units)

    def _abort(self, cause: str, told: str, pause_ms: int) -> None:
        """Engine rules 10 and 13: abort, drop what is in memory, seek back, begin again."""
        _log.warning("stage %s: batch aborted: %s", self._stage.name, told)
        self._producer.abort()
        self._crash.reach(CrashPoint.AFTER_ABORT)
        self._rewind()
        self._metrics.aborted(self._stage.name, cause)
        self._stop.wait(pause_ms / 1_000)

    def _rewind(self) -> None:
        for run in self._running.values():
            run.task.discard()
            run.gate.came_back()
        self._intake.rewind(
            {
                (topic, partition): offset
                for partition, run in self._running.items()
                for topic, offset in run.positions.items()
            }
        )

    def _say_ready(self) -> None:
        """Once: the group has given this worker its share, be it none, and all of it runs."""
        if self._on_ready is not None and self._joined and not self._takeover.pending:
            self._on_ready()
            self._on_ready = None

    def _assigned(self, partitions: set[int]) -> None:
        """In a rebalance callback: only note them (engine rule 27)."""
        self._joined = True
        for partition in partitions:
            self._takeover.add(partition)
        self._tell()

    def _dropped(self, partitions: set[int], lost: bool) -> None:
        """In a rebalance callback: their records are gone already; close their stores."""
        check_closed(self._producer.is_open)
        for partition in partitions:
            run = self._running.pop(partition, None)
            if run is None:
                self._takeover.drop(partition)
                continue
            run.task.discard()
            if not lost:
                run.stamp()
            run.store.close()
        self._tell()

    def _start(self, ready: Ready) -> None:
        task = PartitionTask(
            self._stage,
            ready.partition,
            ready.store,
            self._codec,
            self._producer,
            self._metrics,
            self._settings.states_cached_max,
        )
        self._running[ready.partition] = Running(
            task=task,
            store=ready.store,
            gate=TickGate(self._settings.tick_gap_ms),
            positions=ready.positions,
            noted=set(ready.noted),
            changelog_next=ready.changelog_next,
            changelog_id=ready.changelog_id,
        )
        self._intake.start(ready.partition, ready.positions)
        self._tell()

    def _tell(self) -> None:
        self._metrics.partitions(self._stage.name, len(self._running), self._takeover.pending)

    def _stamp_idle(self) -> None:
        """Keep idle stores young while they are ours (engine rule 18)."""
        now_s = time.monotonic()
        if (now_s - self._stamped_at_s) * 1_000 < self._settings.stamp_every_ms:
            return
        self._stamped_at_s = now_s
        if parse_fence(self._intake.consumer.consumer_group_metadata()).held:
            for run in self._running.values():
                run.stamp()

    def _leave(self) -> None:
        """A clean stop gives the partitions back at once, if it is asked to."""
        if not self._settings.leave_on_stop:
            return
        self._intake.leave()
        until_s = time.monotonic() + _LEAVE_S
        while self._running and time.monotonic() < until_s:
            self._intake.poll(_LEAVE_POLL_S, 0)

    def _close(self) -> None:
        """Let go of everything; a transaction that an error left open is aborted first."""
        try:
            self._producer.abort()
        except (TransactionAborted, TransactionFatal) as error:
            _log.warning("stage %s: at the end: %s", self._stage.name, error)
            self._producer.is_open = False
        self._intake.close()
        self._takeover.close()
        for run in self._running.values():
            run.store.close()
        self._running.clear()
