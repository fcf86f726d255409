"""Stores are rebuilt from the changelog: all of it, never less, and only when they must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

from streams.crashpoints import NoCrash
from streams.lookups import Lookups
from streams.metrics import NoMetrics
from streams.restore import Restorer, RestoreStalled
from streams.rows import state_row
from streams.settings import LoopSettings
from streams.store import Store, StoreMark
from streams.topology import Stage
from streams.worker import WorkerExit
from tests.failures.lab import Lab, eventually, wait_exit
from tests.streams.toy import CHANGELOG, toy_stage

pytestmark = pytest.mark.broker


class Restoring:
    """One restore of partition 0 into a fresh store, stepped by hand."""

    def __init__(self, lab: Lab, folder: Path, stall_ms: int = 20_000) -> None:
        settings = LoopSettings(
            bootstrap=lab.bootstrap,
            prefix=lab.prefix,
            slot="r",
            state_dir=folder,
            restore_stall_ms=stall_ms,
        )
        self.store = Store(folder / "restored")
        self._stage: Stage = toy_stage()
        place = (lab.prefix + CHANGELOG, 0)
        self.target = Lookups(settings).ends([place])[place]
        self._restorer = Restorer(self._stage, settings, NoMetrics(), NoCrash())
        self._restorer.add(0, self.store, StoreMark(0, {}, 0, ""), self.target)
        self.position: int | None = None

    def step(self) -> bool:
        """One step; whether it is done."""
        self.position = self._restorer.step().get(0, self.position)
        return self.position is not None

    def finish(self) -> dict[bytes, bytes]:
        """Step to the end; the rows."""
        eventually("the restore ends", self.step)
        return dict(self.store.scan(b"", b""))

    def close(self) -> None:
        """Let go."""
        self._restorer.close()
        self.store.close()


@pytest.fixture
def restore(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Restoring]]:
    """Start restores of the lab's changelog."""
    started: list[Restoring] = []

    def start(**more: int) -> Restoring:
        started.append(Restoring(lab, tmp_path / f"r{len(started)}", **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


def _without_mark(rows: dict[bytes, bytes]) -> dict[bytes, bytes]:
    return {row: value for row, value in rows.items() if row != b"m"}


@pytest.mark.fencing
def test_10_a_foreign_open_transaction_is_waited_for_and_nothing_above_it_is_missed(
    lab: Lab, restore: Callable[..., Restoring]
) -> None:
    lab.transaction(CHANGELOG, {b"s1": b"below"})
    foreign = lab.transaction(CHANGELOG, {b"s2": b"never"}, end="open")
    lab.transaction(CHANGELOG, {b"s3": b"above"})
    restoring = restore()
    assert not any(restoring.step() for _ in range(60))
    foreign.abort_transaction(30)
    assert _without_mark(restoring.finish()) == {b"s1": b"below", b"s3": b"above"}


@pytest.mark.fencing
def test_10_a_transaction_that_stays_open_fails_the_restore_loudly(
    lab: Lab, restore: Callable[..., Restoring]
) -> None:
    foreign = lab.transaction(CHANGELOG, {b"s1": b"x"}, end="open")
    restoring = restore(stall_ms=500)
    with pytest.raises(RestoreStalled, match="find-hanging"):
        eventually("it stalls", restoring.step)
    foreign.abort_transaction(30)


def test_11_a_changelog_that_ends_in_aborted_records_and_markers_is_restored_to_its_end(
    lab: Lab, restore: Callable[..., Restoring]
) -> None:
    lab.transaction(CHANGELOG, {b"s1": b"1", b"s2": b"2"})
    lab.transaction(CHANGELOG, {b"s1": b"aborted"}, end="abort")
    lab.transaction(CHANGELOG, {}, end="abort")
    restoring = restore()
    assert _without_mark(restoring.finish()) == {b"s1": b"1", b"s2": b"2"}
    assert restoring.position == restoring.target


def test_11_a_changelog_of_nothing_but_aborted_records_is_restored_as_empty(
    lab: Lab, restore: Callable[..., Restoring]
) -> None:
    lab.transaction(CHANGELOG, {b"s1": b"1"}, end="abort")
    assert _without_mark(restore().finish()) == {}


@pytest.mark.fencing
def test_12_a_compacted_changelog_with_gaps_at_its_tail_is_restored_to_its_end(
    lab: Lab, restore: Callable[..., Restoring]
) -> None:
    lab.transaction(CHANGELOG, {b"s1": b"old", b"s2": b"kept"})
    lab.transaction(CHANGELOG, {b"s1": b"new"})
    lab.transaction(CHANGELOG, {b"s1": None})
    lab.compact(CHANGELOG, lambda: [m.key() for m in lab.read(CHANGELOG)] == [b"s2"])
    restoring = restore()
    assert _without_mark(restoring.finish()) == {b"s2": b"kept"}
    assert restoring.position == restoring.target


def test_13_a_store_beyond_the_end_of_a_recreated_changelog_is_rebuilt(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send("a", "b", "c")
    lab.wait_echoes(3)
    assert app.stop() == 0
    for done in lab.admin.delete_topics([lab.prefix + CHANGELOG]).values():
        done.result(30)
    eventually(
        "the topic is gone",
        lambda: lab.prefix + CHANGELOG not in lab.admin.list_topics(timeout=30).topics,
    )
    for done in lab.admin.create_topics(
        [lab._topic(CHANGELOG, {"cleanup.policy": "compact"})]
    ).values():
        done.result(30)
    lab.ready_app().stop()
    assert "is rebuilt: " in lab.log_of()
    assert lab.local_rows() == {}


@pytest.mark.fencing
def test_14_a_store_below_the_start_of_its_changelog_is_rebuilt(lab: Lab) -> None:
    lab.ready_app("a")
    lab.send("a")
    lab.wait_echoes(1)
    lab._apps[-1].stop()
    second = lab.ready_app("b")
    lab.send("b", "c")
    lab.send("x", key="other")
    lab.wait_echoes(4)
    second.stop()
    ends = [m.offset() or 0 for m in lab.read(CHANGELOG)]
    lab.set_topic(CHANGELOG, cleanup_policy="delete")
    # Kafka deletes records only where deletion is allowed, so it is, for a moment.
    place = TopicPartition(lab.prefix + CHANGELOG, 0, ends[-5])
    for done in lab.admin.delete_records([place]).values():
        done.result(30)
    lab.set_topic(CHANGELOG, cleanup_policy="compact")
    lab.ready_app("a").stop()
    assert "below the changelog's start" in lab.log_of("a")
    assert lab.local_rows("a") == lab.logged_rows()


@pytest.mark.fencing
def test_15_a_key_deleted_while_a_worker_was_away_stays_deleted_though_its_tombstone_is_gone(
    lab: Lab,
) -> None:
    app = lab.ready_app("a")
    lab.send("x", key="gone")
    lab.send("x", key="kept")
    lab.wait_echoes(2)
    app.kill()
    assert lab.count_of("gone", "a") == 1
    peer = lab.ready_app("b")
    lab.send("forget", key="gone")
    lab.wait_echoes(3)
    peer.stop()
    row = state_row("gone", 0)
    lab.compact(CHANGELOG, lambda: row not in {m.key() for m in lab.read(CHANGELOG)})
    lab.ready_app("a").stop()
    assert "tombstones it has not seen may be gone" in lab.log_of("a")
    assert lab.count_of("gone", "a") == 0
    assert lab.count_of("kept", "a") == 1
    assert lab.local_rows("a") == lab.logged_rows()


def test_a_store_that_is_still_good_is_not_rebuilt(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send("a")
    lab.wait_echoes(1)
    app.kill()
    lab.ready_app().stop()
    assert lab.log_of().count("is rebuilt") == 1
    assert "restored: 0 rows" in lab.log_of().split("reached", maxsplit=1)[-1]


def test_28_a_corrupt_store_is_wiped_and_rebuilt(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send("a", "b")
    lab.wait_echoes(2)
    app.stop()
    folder = lab.folder / "a" / "toy" / "0"
    for path in folder.glob("MANIFEST*"):
        path.write_bytes(b"\xff" * 64)
    lab.ready_app().stop()
    assert lab.local_rows() == lab.logged_rows()
    assert lab.count_of("k") == 2


def test_19_rule_a_position_below_the_logs_start_stops_the_worker(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send("a")
    lab.wait_echoes(1)
    app.stop()
    lab.send("b", "c")
    place = TopicPartition(lab.prefix + "resolutions", 0, 2)
    for done in lab.admin.delete_records([place]).values():
        done.result(30)
    assert wait_exit(lab.app()) == WorkerExit.FAILED
    assert "the group stands at 1, the log begins at 2" in lab.log_of()
    assert len(lab.echoes()) == 1


def test_state_without_a_position_stops_the_worker_instead_of_folding_again(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send("a")
    lab.wait_echoes(1)
    app.stop()
    for done in lab.admin.delete_consumer_groups([f"{lab.prefix}toy"]).values():
        done.result(30)
    assert wait_exit(lab.app()) == WorkerExit.FAILED
    assert "the group has no position" in lab.log_of()
    assert len(lab.echoes()) == 1


@pytest.mark.fencing  # and a broker that notices a dead member
def test_29_a_locked_state_folder_ends_the_worker_with_one_line(lab: Lab) -> None:
    lab.ready_app("a")
    lab.send("a")
    lab.wait_echoes(1)
    intruder = lab.folder / "b"
    intruder.symlink_to(lab.folder / "a")
    second = lab.app("b", settings={"lock_wait_ms": 300})
    lab._apps[0].kill()
    store = Store(lab.folder / "a" / "toy" / "0")
    assert wait_exit(second) == WorkerExit.FAILED
    store.close()
    assert "another live process holds this state folder" in lab.log_of("b")


def test_31_raised_partitions_are_refused(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send("a")
    lab.wait_echoes(1)
    app.stop()
    names = ["resolutions", "commits-ticks", "receipts", "commits-changelog"]
    grow = [NewPartitions(lab.prefix + name, 2) for name in names[:1]]
    for done in lab.admin.create_partitions(grow).values():
        done.result(30)
    assert wait_exit(lab.app()) == WorkerExit.FAILED
    assert "same number of partitions" in lab.log_of()
    grow = [NewPartitions(lab.prefix + name, 2) for name in names[1:]]
    for done in lab.admin.create_partitions(grow).values():
        done.result(30)
    assert wait_exit(lab.app()) == WorkerExit.FAILED
    assert "committed with 1 partitions, now there are 2" in lab.log_of()
    assert msgspec.json.decode(lab.read("receipts")[0].value() or b"")["count"] == 1
