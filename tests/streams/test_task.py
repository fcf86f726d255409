"""One partition of a stage without Kafka: rows, timers, outputs, and what a fault leaves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import pytest

from streams.metrics import NoMetrics
from streams.outputs import Output
from streams.rows import parse_timer_row, state_row
from streams.source import Cause, Flaw, LogRecord, decode
from streams.store import MemoryStore, StoreMark
from streams.task import WAKE_PARKED_MS, FoldFailed, PartitionTask
from tallystick.errors import StateCorrupt
from tallystick.records import Tick
from tests.streams.toy import CHANGELOG, ECHOES, NOTES, TICKS, Echo, JsonCodec, Note, toy_stage

MARK = StoreMark(0, {}, 0, "")


@dataclass
class Rig:
    """A task over a store in memory, and everything that it sent."""

    store: MemoryStore = field(default_factory=MemoryStore)
    sent: list[tuple[Output, Cause]] = field(default_factory=list)
    offset: int = 0
    cached_max: int = 100

    def __post_init__(self) -> None:
        self.task = PartitionTask(
            toy_stage(), 3, self.store, JsonCodec(), self, NoMetrics(), self.cached_max
        )

    def send(self, output: Output, cause: Cause) -> None:
        """See Sink."""
        self.sent.append((output, cause))

    def note(self, text: str, key: str = "k", at_ms: int = 1_000) -> LogRecord:
        """The next note of the log."""
        self.offset += 1
        value = msgspec.json.encode(Note(note_id=f"n{self.offset}", text=text))
        raw = LogRecord(NOTES, 3, self.offset, at_ms, key.encode(), value)
        return decode(raw, JsonCodec())

    def fold(self, text: str, key: str = "k", at_ms: int = 1_000) -> None:
        """Fold the next note and commit."""
        self.task.fold(self.note(text, key, at_ms))
        self.commit()

    def wake(self, at_ms: int, keys_max: int = 10, flaw: Flaw | None = None) -> int:
        """Let a tick come back."""
        self.offset += 1
        value = msgspec.json.encode(Tick(partition=3, at_ms=at_ms))
        tick = decode(LogRecord(TICKS, 3, self.offset, at_ms, b"3", value), JsonCodec())
        woken = self.task.wake(tick, keys_max, lambda _: flaw)
        self.commit()
        return woken

    def commit(self) -> None:
        """As around a committed transaction."""
        self.task.log_rows()
        self.task.commit(MARK, lambda: None)

    def changelog(self) -> dict[bytes, bytes]:
        """The rows that the changelog holds after compaction."""
        rows: dict[bytes, bytes] = {}
        for output, _ in self.sent:
            if output.topic == CHANGELOG:
                assert output.partition == 3
                if output.value is None:
                    rows.pop(output.key, None)
                else:
                    rows[output.key] = output.value
        return rows

    def echoes(self) -> list[Echo]:
        """What was emitted."""
        return [
            msgspec.json.decode(output.value or b"", type=Echo)
            for output, _ in self.sent
            if output.topic == ECHOES
        ]


def test_the_changelog_always_equals_the_store() -> None:
    rig = Rig()
    for text, key in [("a", "k"), ("timer:50", "k"), ("b", "é|\0"), ("forget", "k"), ("c", "")]:
        rig.fold(text, key)
        assert rig.changelog() == rig.store.rows
    rig.fold("timer:5", "k")
    rig.wake(10_000)
    assert rig.changelog() == rig.store.rows


def test_a_row_goes_to_the_changelog_once_a_batch_with_its_last_value() -> None:
    rig = Rig()
    for text in ("a", "timer:50", "timer:70"):
        rig.task.fold(rig.note(text))
    assert [o.key for o, _ in rig.sent if o.topic == CHANGELOG] == []
    rig.commit()
    logged = [output.key for output, _ in rig.sent if output.topic == CHANGELOG]
    assert len(logged) == len(set(logged)) == len(rig.store.rows)
    assert rig.changelog() == rig.store.rows


def test_a_row_that_did_not_change_is_not_written_again() -> None:
    rig = Rig()
    rig.fold("same")
    before = len(rig.sent)
    rig.fold("same")
    written = [output.key for output, _ in rig.sent[before:] if output.topic == CHANGELOG]
    assert written == [state_row("k", 0)]


def test_a_forgotten_key_leaves_tombstones_for_all_its_rows() -> None:
    rig = Rig()
    rig.fold("timer:50")
    rig.fold("forget")
    assert rig.store.rows == {}
    deleted = [o.key for o, _ in rig.sent if o.topic == CHANGELOG and o.value is None]
    assert len(deleted) == 3


def test_an_evicted_state_is_read_back_with_what_is_staged() -> None:
    rig = Rig(cached_max=1)
    for key in ("a", "b", "a", "b"):
        rig.task.fold(rig.note("x", key))
    assert [echo.count for echo in rig.echoes()] == [1, 1, 2, 2]


def test_21_a_timer_of_a_key_rewritten_in_the_same_batch_does_not_go_off() -> None:
    rig = Rig()
    rig.fold("timer:100", at_ms=1_000)
    rig.task.fold(rig.note("timer:9000", at_ms=1_050))
    assert rig.wake(2_000) == 0
    assert rig.task.earliest_due_ms() == 10_050
    assert [echo.text for echo in rig.echoes()] == ["timer:100", "timer:9000"]


def test_a_tick_before_the_due_time_wakes_nobody() -> None:
    rig = Rig()
    rig.fold("timer:100", at_ms=1_000)
    assert rig.wake(1_099) == 0
    assert rig.wake(1_100) == 1
    assert rig.task.earliest_due_ms() is None


def test_due_keys_are_woken_in_order_of_time_a_bounded_number_at_once() -> None:
    rig = Rig()
    for number in range(5):
        rig.fold(f"timer:{100 - number}", f"key-{number}")
    counts = []
    while (woken := rig.wake(5_000, keys_max=2)) == 2:
        counts.append(woken)
    assert counts == [2, 2]
    woke = [echo.note_id for echo in rig.echoes() if echo.text == "woke"]
    assert woke == [f"woke key-{number}" for number in (4, 3, 2, 1, 0)]


def test_a_wake_that_raises_is_named_and_once_marked_it_is_parked() -> None:
    rig = Rig()
    rig.fold("wake-poison:10")
    with pytest.raises(FoldFailed) as failed:
        rig.wake(5_000)
    assert failed.value.cause.woken == "k"
    rig.task.discard()
    rig.wake(5_000, flaw=failed.value.flaw)
    assert rig.task.earliest_due_ms() == 5_000 + WAKE_PARKED_MS
    assert rig.changelog() == rig.store.rows
    reopened = Rig(store=rig.store)
    assert reopened.task.earliest_due_ms() == 5_000 + WAKE_PARKED_MS
    reopened.fold("x", at_ms=5_001)  # the fold still asks for its old time, which is due at once
    assert reopened.task.earliest_due_ms() == 1_010


def test_a_fold_that_raises_stages_and_sends_nothing() -> None:
    rig = Rig()
    with pytest.raises(FoldFailed) as failed:
        rig.task.fold(rig.note("poison"))
    assert failed.value.flaw == Flaw("fold_failed", "ValueError: poisoned by n1")
    assert rig.sent == []
    rig.commit()
    assert rig.store.rows == {}


def test_after_an_abort_state_and_timers_are_those_of_the_store() -> None:
    rig = Rig()
    rig.fold("timer:100", at_ms=1_000)
    rows = dict(rig.store.rows)
    rig.task.fold(rig.note("timer:1"))
    rig.task.discard()
    assert rig.store.rows == rows
    assert rig.task.earliest_due_ms() == 1_100
    rig.fold("x")
    assert rig.echoes()[-1].count == 2


def test_a_state_that_cannot_be_read_stops_the_stage_and_blames_no_record() -> None:
    rig = Rig()
    rig.fold("a")
    rig.store.rows[state_row("k", 0)] = b"\xc1"
    reopened = Rig(store=rig.store)
    with pytest.raises(StateCorrupt, match="no record is skipped"):
        reopened.task.fold(reopened.note("b"))


def test_a_timer_row_that_another_version_wrote_is_replaced_when_it_goes_off() -> None:
    rig = Rig()
    rig.fold("timer:9000", at_ms=1_000)
    (timer,) = [row for row in rig.store.rows if row.startswith(b"t")]
    stale = timer.replace(timer[:9], b"t" + (500).to_bytes(8, "big"))
    rig.store.rows[stale] = rig.store.rows.pop(timer)
    reopened = Rig(store=rig.store)
    assert reopened.wake(1_001) == 1
    assert [parse_timer_row(r) for r in rig.store.rows if r.startswith(b"t")] == [(10_000, "k")]
    assert reopened.echoes() == []


def test_an_output_goes_to_its_sources_partition_unless_it_is_spread() -> None:
    rig = Rig()
    rig.fold("a")
    rig.fold("spread:elsewhere")
    found = [output for output, _ in rig.sent if output.topic == ECHOES]
    assert [(output.partition, output.key) for output in found] == [(3, b"k"), (None, b"elsewhere")]


def test_headers_are_the_same_for_the_same_place_in_the_log_and_only_there() -> None:
    def ids(offset: int, text: str = "a") -> list[bytes]:
        rig = Rig(offset=offset)
        rig.task.fold(replace(rig.note(text), headers=(("traceparent", b"t"),)))
        headers = [dict(output.headers) for output, _ in rig.sent if output.topic == ECHOES]
        assert headers[0]["ce_time"] == b"1970-01-01T00:00:01.000Z"
        assert headers[0]["ce_type"] == b"tallystick.receipts"
        assert headers[0]["ce_source"] == b"tallystick/toy"
        assert headers[0]["traceparent"] == b"t"
        return [header["ce_id"] for header in headers]

    assert ids(1) == ids(1, "b") != ids(2)
