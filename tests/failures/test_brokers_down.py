"""The broker stands still in the middle of a commit: on a private one that a test may hurt."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.broker.apache import ApacheBroker
from streams.worker import WorkerExit
from tests.failures.lab import Lab, eventually, wait_exit, wait_stopped

pytestmark = [pytest.mark.broker, pytest.mark.fencing]


PATIENT = {
    "commit_try_ms": 500,
    "transaction_timeout_ms": 60_000,
    "session_timeout_ms": 60_000,
    "poll_gap_ms_max": 60_000,
}
"""The stall is shorter than transaction and membership last, so the commit can still succeed."""


@pytest.fixture
def hurt_lab(private_broker: ApacheBroker, prefix: str, tmp_path: Path) -> Iterator[Lab]:
    """A lab on a broker of its own."""
    lab = Lab(private_broker.bootstrap, prefix, tmp_path).create()
    yield lab
    lab.close()


def test_19_a_group_coordinator_that_hangs_ends_the_process_and_the_restart_is_clean(
    hurt_lab: Lab, private_broker: ApacheBroker
) -> None:
    lab = hurt_lab
    app = lab.ready_app(at="before_send_offsets", act="stop", settings={"broker_stuck_ms": 3_000})
    lab.send("a")
    wait_stopped(app.pid)
    _pause(private_broker)
    app.signal(signal.SIGCONT)
    assert wait_exit(app) == WorkerExit.WATCHDOG
    private_broker.resume_node()
    assert "stuck in send_offsets_to_transaction" in lab.log_of()
    lab.ready_app()
    lab.send("b")
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]


def test_20_a_transaction_coordinator_that_is_away_during_the_commit_is_asked_again(
    hurt_lab: Lab, private_broker: ApacheBroker
) -> None:
    lab = hurt_lab
    app = lab.ready_app(at="after_send_offsets", act="stop", settings=PATIENT)
    lab.send("a")
    wait_stopped(app.pid)
    _pause(private_broker)
    app.signal(signal.SIGCONT)
    eventually("the commit is repeated", lambda: lab.log_of().count("is repeated") >= 4)
    private_broker.resume_node()
    assert [echo.count for echo in lab.wait_echoes(1)] == [1]
    lab.send("b")
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]
    assert app.returncode is None


def test_20_a_transaction_coordinator_that_is_killed_during_the_commit_is_asked_again(
    hurt_lab: Lab, private_broker: ApacheBroker
) -> None:
    lab = hurt_lab
    app = lab.ready_app(at="after_send_offsets", act="stop", settings=PATIENT)
    lab.send("a")
    wait_stopped(app.pid)
    private_broker.kill_node()
    app.signal(signal.SIGCONT)
    eventually("the commit is repeated", lambda: lab.log_of().count("is repeated") >= 2)
    private_broker.restart_node()
    assert [echo.count for echo in lab.wait_echoes(1)] == [1]
    lab.send("b")
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]


def _pause(broker: ApacheBroker) -> None:
    """Return once it answers nothing any more."""
    broker.pause_node()
    wait_stopped(broker.state.nodes[0].process.pid)
