"""A fold that takes too long: for its transaction, or for its group."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.worker import WorkerExit
from tests.failures.lab import Lab, eventually

pytestmark = pytest.mark.broker


@pytest.mark.fencing
def test_21_a_handler_that_outlives_its_transaction_is_replayed_correctly(
    lab: Lab, tmp_path: Path
) -> None:
    settings = {"transaction_timeout_ms": 2_000, "message_timeout_ms": 1_500}
    lab.send("a", f"sleep:5:{tmp_path / 'slept'}", "b")
    first = lab.app(settings=settings)

    def replayed() -> bool:
        if first.returncode is not None:
            assert first.returncode == WorkerExit.FENCED
            return True
        return len(lab.echoes()) == 3

    eventually("the transaction is fenced or aborted", replayed)
    if first.returncode is not None:
        lab.ready_app(settings=settings)
    assert [echo.count for echo in lab.wait_echoes(3)] == [1, 2, 3]
    lab.send("c")
    assert [echo.count for echo in lab.wait_echoes(4)] == [1, 2, 3, 4]


@pytest.mark.fencing
def test_22_a_handler_that_outlives_its_membership_commits_nothing_and_a_peer_finishes(
    lab: Lab, tmp_path: Path
) -> None:
    settings = {"poll_gap_ms_max": 2_000, "restore_stall_ms": 20_000}
    slow = lab.ready_app("a", settings=settings)
    lab.send(f"sleep:12:{tmp_path / 'slept'}", "b", "c")
    eventually("the handler sleeps", (tmp_path / "slept").exists)
    lab.ready_app("b")
    assert [echo.count for echo in lab.wait_echoes(3)] == [1, 2, 3]
    assert slow.returncode is None
    eventually("the slow one aborts", lambda: "batch aborted" in lab.log_of("a"))
    assert [echo.count for echo in lab.echoes()] == [1, 2, 3]
    lab.send("d")
    assert [echo.count for echo in lab.wait_echoes(4)] == [1, 2, 3, 4]
    assert slow.returncode is None
