"""The simulated log behaves as the engine rules say that Kafka does."""

from __future__ import annotations

import pytest

from streams.fence import FenceLost, parse_fence, require_fence
from tallystick.records import Tick
from tallystick.topics import Topic
from tests.simulation.clock import START_MS, Clock
from tests.simulation.codec import QuickCodec
from tests.simulation.groups import Group
from tests.simulation.log import Fenced, Log, Refused, Txn

TICKS = (Topic.COMMITS_TICKS.value, 0)
ROWS = (Topic.COMMITS_CHANGELOG.value, 0)


@pytest.fixture
def log() -> Log:
    """An empty log with one group of two partitions."""
    empty = Log(Clock(), QuickCodec(), partitions=2)
    empty.groups["g"] = Group("g", 2)
    return empty


def begin(log: Log, producer: str, timeout_ms: int = 12_000) -> Txn:
    """A fresh producer's open transaction."""
    return log.begin(producer, log.init_producer(producer), timeout_ms)


def write(log: Log, txn: Txn | None, *at_ms: int) -> None:
    """One tick each."""
    for moment_ms in at_ms:
        value, headers = log.codec.encode(TICKS[0], Tick(partition=0, at_ms=moment_ms))
        log.append(*TICKS, b"0", value, headers, txn)


def read(log: Log) -> list[int]:
    """The ticks that a committed reader gets."""
    return [r.record.at_ms for r in log.committed(TICKS) if isinstance(r.record, Tick)]


def test_nothing_above_an_open_transaction_is_handed_out(log: Log) -> None:
    first, second = begin(log, "a"), begin(log, "b")
    write(log, first, 1)
    write(log, second, 2)
    log.commit(second)

    assert read(log) == []
    assert log.place(TICKS).stable == 0
    assert log.high_watermark(TICKS) == 3

    log.commit(first)
    assert read(log) == [1, 2]


def test_an_aborted_transaction_leaves_a_gap_and_nothing_else(log: Log) -> None:
    txn = begin(log, "a")
    write(log, txn, 1, 2)
    log.abort(txn)
    write(log, None, 3)

    assert read(log) == [3]
    records, position = log.fetch(TICKS, 0, 100)
    assert [record.offset for record in records] == [3]
    assert position == log.high_watermark(TICKS) == 4


def test_a_second_producer_of_the_same_id_fences_the_first_and_aborts_its_transaction(
    log: Log,
) -> None:
    first = begin(log, "a")
    write(log, first, 1)
    second = begin(log, "a")
    write(log, second, 2)

    with pytest.raises(Fenced):
        log.commit(first)
    log.commit(second)
    assert read(log) == [2]


def test_the_broker_aborts_a_transaction_that_stays_open(log: Log) -> None:
    txn = begin(log, "a", timeout_ms=1_000)
    write(log, txn, 1)
    log.clock.run(START_MS + 1_001)

    with pytest.raises(Refused):
        log.commit(txn)
    assert read(log) == []


def test_an_offset_commit_of_an_older_generation_is_refused(log: Log) -> None:
    group = log.groups["g"]
    first = group.join("s1")
    fence = (first, group.generation)
    group.join("s2")
    txn = begin(log, "a")
    write(log, txn, 1)

    with pytest.raises(Refused):
        log.send_offsets(txn, group, fence, {TICKS: 1})
    log.send_offsets(txn, group, (first, group.generation), {TICKS: 1})
    assert group.committed == {}
    log.commit(txn)
    assert group.committed == {TICKS: 1}


def test_a_commit_without_a_member_passes_the_broker_and_fails_our_own_check(log: Log) -> None:
    """KAFKA-18060: this is why the loop checks the metadata itself."""
    group = log.groups["g"]
    txn = begin(log, "a")
    write(log, txn, 1)
    log.send_offsets(txn, group, ("", -1), {TICKS: 1})
    log.commit(txn)

    assert group.committed == {TICKS: 1}
    with pytest.raises(FenceLost):
        require_fence(group.metadata("", -1))
    member = group.join("s1")
    held = parse_fence(require_fence(group.metadata(member, group.generation)))
    assert (held.group, held.member, held.generation) == ("g", member, group.generation)


def test_members_share_partitions_by_range_and_a_slot_has_one_member(log: Log) -> None:
    group = log.groups["g"]
    first, second = group.join("s1"), group.join("s2")
    assert (group.share(first), group.share(second)) == ({0}, {1})

    younger = group.join("s1")
    assert (group.share(first), group.share(younger)) == (set(), {0})

    group.leave(younger)
    assert group.share(second) == {0, 1}


def test_compaction_keeps_the_last_of_each_key_and_what_is_open(log: Log) -> None:
    for value in (b"1", b"2", b"3"):
        log.append(*ROWS, b"k", value, [])
    txn = begin(log, "a")
    log.append(*ROWS, b"k", b"4", [], txn)

    assert log.compact(ROWS[0]) == 2
    assert [(r.offset, r.value) for r in log.committed(ROWS)] == [(2, b"3")]
    log.commit(txn)
    assert [(r.offset, r.value) for r in log.committed(ROWS)] == [(2, b"3"), (3, b"4")]


def test_the_log_stamps_records_and_never_goes_back(log: Log) -> None:
    write(log, None, 1)
    log.clock.run(START_MS + 50)
    write(log, None, 2)

    assert [record.at_ms - START_MS for record in log.committed(TICKS)] == [0, 50]
