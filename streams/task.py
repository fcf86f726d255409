"""One partition of one stage: folds records, wakes due keys, stages rows, hands out outputs.

It knows no Kafka client and no clock, so the loop and the replay run the same code. Everything
that can fail (fold, pack, encode) happens before anything is staged or sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from processors.step import Step
from streams.deadletters import DeadLetters
from streams.headers import output_headers, output_id
from streams.metrics import LoopMetrics
from streams.outputs import Output, Sink
from streams.overlay import Overlay
from streams.source import Cause, Flaw, LogRecord
from streams.states import Entry, States
from streams.store import RowStore, StoreMark
from streams.timers import Timers
from streams.topology import Stage
from tallystick.codec import Codec
from tallystick.errors import InvariantBroken, StateCorrupt, invariant

WAKE_PARKED_MS = 60_000
"""How long a key rests whose wake raised. Lower: a broken key fills `dead-letters`. Higher: it
comes back later once the fold is mended."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One key's turn; its next timer is not earlier than `not_before_ms` if that is given."""

    cause: Cause
    key: str
    at_ms: int
    not_before_ms: int | None = None
    traceparent: bytes | None = None


class FoldFailed(Exception):
    """A fold raised on `cause`: the batch is aborted, and `cause` goes to `dead-letters`."""

    def __init__(self, cause: Cause, flaw: Flaw) -> None:
        super().__init__(f"{cause}: {flaw.reason}")
        self.cause = cause
        self.flaw = flaw


class PartitionTask:
    """A partition's state and what one transaction does to it."""

    def __init__(
        self,
        stage: Stage,
        partition: int,
        store: RowStore,
        codec: Codec,
        sink: Sink,
        metrics: LoopMetrics,
        states_cached_max: int,
    ) -> None:
        self.stage = stage
        self.partition = partition
        self._codec = codec
        self._sink = sink
        self._letters = DeadLetters(stage, codec)
        self._overlay = Overlay(store)
        self._timers = Timers(self._overlay)
        self._cause = Cause("", partition, 0)
        self._writers: dict[bytes, Cause] = {}
        self._states = States(
            stage.fold,
            self._overlay,
            self._timers,
            states_cached_max,
            self._note_row,
            lambda size: metrics.stored_row(stage.name, size),
        )

    def fold(self, record: LogRecord) -> None:
        """Fold one record; raises FoldFailed, or an error that stops the stage."""
        message = record.record
        if message is None:
            raise InvariantBroken("only decoded records are folded")
        before = self._states.load(record.key)
        turn = _Turn(record.cause, record.key, record.at_ms, traceparent=record.traceparent)
        apply = self.stage.fold.apply
        self._run(turn, before, lambda: apply(turn.key, before.state, message, turn.at_ms))

    def wake(self, tick: LogRecord, keys_max: int, flawed: Callable[[Cause], Flaw | None]) -> int:
        """Wake at most `keys_max` keys that are due at the tick's log time; returns how many.

        Fewer than `keys_max` means that the tick is done. The rest are found again by their
        timer rows, so a crash between two transactions of one tick loses none.
        """
        due = self._timers.due(tick.at_ms, keys_max)
        for due_ms, key in due:
            cause = tick.cause._replace(woken=key)
            flaw = flawed(cause)
            if flaw is not None:
                self._park(tick, key, cause, flaw)
            else:
                self._wake(cause, key, due_ms, tick.at_ms)
        return len(due)

    def _wake(self, cause: Cause, key: str, due_ms: int, at_ms: int) -> None:
        before = self._states.load(key)
        if before.state is None or before.timer_ms != due_ms:
            self._cause = cause
            self._states.heal_timer(key, due_ms)
            return
        turn = _Turn(cause, key, at_ms, not_before_ms=at_ms + 1)
        self._run(turn, before, lambda: self.stage.fold.wake(key, before.state, at_ms))

    def _run(self, turn: _Turn, before: Entry, step_of: Callable[[], Step[Any]]) -> None:
        try:
            step = step_of()
            outputs = self._encode(turn, step)
            after = self._states.plan(step.state, turn.not_before_ms)
        except (InvariantBroken, StateCorrupt, MemoryError):
            raise  # ours or the machine's fault: the stage stops, no record is blamed
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise FoldFailed(turn.cause, Flaw("fold_failed", reason)) from error
        self._cause = turn.cause
        self._states.take(turn.key, before, after)
        for output in outputs:
            self._sink.send(output, turn.cause)

    def _encode(self, turn: _Turn, step: Step[Any]) -> list[Output]:
        outputs = []
        for index, emit in enumerate(step.emits):
            topic = str(emit.topic)
            value, codec_headers = self._codec.encode(topic, emit.record)
            headers = output_headers(
                topic=topic,
                stage=self.stage.name,
                event_id=output_id(turn.cause, "out", index),
                at_ms=turn.at_ms,
                codec_headers=codec_headers,
                traceparent=turn.traceparent,
            )
            partition = None if emit.spread else self.partition
            outputs.append(Output(topic, emit.key.encode(), value, headers, partition))
        return outputs

    def bury(self, record: LogRecord, flaw: Flaw, *, whole: bool) -> None:
        """Send the record to `dead-letters` in its place, in this transaction."""
        self._sink.send(self._letters.letter(record, record.cause, flaw, whole=whole), record.cause)

    def _park(self, tick: LogRecord, key: str, cause: Cause, flaw: Flaw) -> None:
        """A key whose wake raised: a dead letter names it, and its timer moves on."""
        before = self._states.load(key)
        after = self._states.plan(before.state, tick.at_ms + WAKE_PARKED_MS)
        self._cause = cause
        self._states.take(key, before, after)
        self._sink.send(self._letters.letter(tick, cause, flaw, whole=True), cause)

    def earliest_due_ms(self) -> int | None:
        """When this partition wants its next tick (log time), or None."""
        return self._timers.earliest_ms()

    def commit(self, mark: StoreMark, halfway: Callable[[], None]) -> None:
        """After the transaction is committed: rows and positions in one batch (engine rule 16)."""
        self._overlay.write_through(mark, halfway)

    def discard(self) -> None:
        """After an abort: nothing local has changed (engine rule 13)."""
        self._overlay.discard()
        self._writers.clear()
        self._states.forget()
        self._timers.forget()

    def _note_row(self, row: bytes, value: bytes | None) -> None:
        """Remember who staged a row last; a delete is a null value, never an empty one (engine
        rules 20, 21)."""
        invariant(value != b"" or row[:1] == b"s", "only state rows may be empty")
        self._writers[row] = self._cause

    def log_rows(self) -> None:
        """Send every staged row to the changelog, in the same transaction (engine rule 1).

        Once a batch and not once a record: a key's head and timer change with every record, and
        only their last values matter.
        """
        for row, value in self._overlay.settle():
            output = Output(self.stage.changelog, row, value, [], self.partition)
            self._sink.send(output, self._writers[row])
        self._writers.clear()
