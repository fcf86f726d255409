"""Who may commit: aborts leave nothing behind, zombies are refused, one slot has one worker."""

from __future__ import annotations

import signal

import pytest

from streams.crashpoints import CrashPoint
from streams.worker import WorkerExit
from tests.failures.lab import Lab, eventually, wait_exit, wait_stopped
from tests.failures.stepped import SteppedLoop
from tests.streams.toy import NOTES

pytestmark = pytest.mark.broker


class LookAfterAbort:
    """Notes what stands in memory and on disk right after each abort."""

    def __init__(self) -> None:
        self.aborts = 0

    def reach(self, point: CrashPoint) -> None:
        """See CrashPoints."""
        self.aborts += point is CrashPoint.AFTER_ABORT


def test_05_an_abort_leaves_overlay_empty_rows_unchanged_and_position_at_the_first_record(
    lab: Lab,
) -> None:
    look = LookAfterAbort()
    stepped = SteppedLoop(lab, crash=look)
    lab.send("a")
    stepped.until("a is folded", lambda: lab.echoes())
    rows, run = stepped.rows(), stepped.loop._running[0]
    positions = dict(run.positions)
    lab.send_together("b", "c", "poison", "d")
    eventually("the poisoned batch is aborted", lambda: (stepped.turn(), look.aborts)[1])

    assert stepped.staged() == {}
    assert stepped.rows() == rows
    assert run.positions == positions
    assert not stepped.loop._intake.queue
    assert stepped.loop._intake._next[NOTES, 0] == positions[NOTES]
    assert [echo.text for echo in lab.echoes()] == ["a"]

    stepped.until("the rest is folded", lambda: len(lab.echoes()) >= 4)
    assert [echo.count for echo in lab.echoes()] == [1, 2, 3, 4]
    assert [letter.source_offset for letter in lab.letters()] == [3]
    assert look.aborts == 1
    stepped.close()


@pytest.mark.fencing
def test_06_a_zombie_with_an_old_generation_is_refused_and_lives_on(lab: Lab) -> None:
    zombie = lab.ready_app("a", at="before_send_offsets", act="stop")
    lab.send("ignore")  # the zombie's transaction holds nothing but the offset
    wait_stopped(zombie.pid)
    lab.ready_app("b")
    eventually("the peer commits the note", lambda: lab.committed() == 1)
    lab.send("x", "y")
    lab.wait_echoes(2)
    zombie.signal(signal.SIGCONT)
    eventually("the zombie's commit is refused", lambda: "batch aborted" in lab.log_of("a"))
    assert lab.committed() == 3
    lab.send("z")
    assert [echo.count for echo in lab.wait_echoes(3)] == [1, 2, 3]
    assert zombie.returncode is None
    assert lab.committed() == 4


@pytest.mark.fencing
def test_06_a_zombie_whose_outputs_are_in_the_log_is_fenced_and_they_stay_unseen(lab: Lab) -> None:
    zombie = lab.ready_app("a", at="before_send_offsets", act="stop")
    lab.send("x", "y")
    wait_stopped(zombie.pid)
    lab.ready_app("b")  # its restore waits until the zombie's transaction has timed out
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]
    zombie.signal(signal.SIGCONT)
    eventually(
        "the zombie aborts or ends",
        lambda: "batch aborted" in lab.log_of("a") or zombie.returncode is not None,
    )
    assert zombie.returncode in (None, WorkerExit.FENCED)
    lab.send("z")
    assert [echo.count for echo in lab.wait_echoes(3)] == [1, 2, 3]


@pytest.mark.fencing
def test_07_a_zombie_without_membership_refuses_its_own_commit(lab: Lab) -> None:
    zombie = lab.ready_app("a", at="after_produce", act="stop-and-rest")
    lab.send("ignore")
    wait_stopped(zombie.pid)
    lab.ready_app("b")
    lab.send("x")
    lab.wait_echoes(1)
    zombie.signal(signal.SIGCONT)
    eventually(
        "the check refuses before the broker is asked",
        lambda: "no live membership" in lab.log_of("a"),
    )
    lab.send("y")
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]
    assert zombie.returncode is None


@pytest.mark.fencing  # and a broker that notices a dead member
def test_09_of_two_workers_with_one_transactional_id_the_older_ends_without_a_local_write(
    lab: Lab,
) -> None:
    shared = ("--transactional-id", f"{lab.prefix}shared")
    older = lab.ready_app("a", extra=shared)
    lab.send("x")
    lab.wait_echoes(1)
    lab.ready_app("b", extra=shared)  # one partition: it gets none, but takes the epoch
    lab.send("y")
    assert wait_exit(older) == WorkerExit.FENCED
    assert "no other worker uses this slot" in lab.log_of("a")
    assert lab.count_of("k", "a") == 1
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]


def test_a_second_worker_in_the_same_slot_ends_the_first(lab: Lab) -> None:
    first = lab.ready_app("a")
    lab.send("x")
    lab.wait_echoes(1)
    lab.app("a", settings={"lock_wait_ms": 20_000})
    assert wait_exit(first) == WorkerExit.FENCED
    lab.send("y")
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]
