"""A worker is killed at every boundary of a commit: each input has exactly one output."""

from __future__ import annotations

import signal

import pytest

from tests.failures.lab import KILLED, Lab, eventually, wait_exit
from tests.streams.toy import CHANGELOG, ECHOES

pytestmark = pytest.mark.broker


def _crash_then_restart(lab: Lab, at: str) -> list[int]:
    """Three notes, a crash in the transaction of the fourth, a restart; the echoes' counts."""
    first = lab.ready_app(at=f"{at}:2")
    lab.send("a", "b", "c")
    eventually("the first batch is through", lambda: len(lab.echoes()) >= 1)
    if first.returncode is None:
        lab.send("d")
    assert wait_exit(first) == KILLED
    lab.send("e")
    second = lab.ready_app()
    wanted = lab._sent
    counts = [echo.count for echo in lab.wait_echoes(wanted)]
    assert second.stop() == 0
    assert lab.local_rows() == lab.logged_rows()
    assert lab.count_of("k") == wanted
    return counts


def test_01_killed_after_produce_before_offsets_leaves_no_trace(lab: Lab) -> None:
    counts = _crash_then_restart(lab, "before_send_offsets")
    assert counts == list(range(1, lab._sent + 1))
    # The aborted outputs are in the log, and no committed reader sees them.
    assert len(lab.read(ECHOES, committed=False)) > len(counts)


def test_02_killed_after_offsets_before_commit_leaves_no_trace_and_frees_the_log(lab: Lab) -> None:
    counts = _crash_then_restart(lab, "after_send_offsets")
    assert counts == list(range(1, lab._sent + 1))


def test_03_killed_after_commit_before_the_store_rolls_forward(lab: Lab) -> None:
    counts = _crash_then_restart(lab, "after_commit")
    assert counts == list(range(1, lab._sent + 1))


def test_03_the_store_is_behind_never_ahead_after_such_a_crash(lab: Lab) -> None:
    app = lab.ready_app(at="after_commit")
    lab.send("a")
    assert wait_exit(app) == KILLED
    assert [echo.count for echo in lab.wait_echoes(1)] == [1]
    assert lab.local_rows() == {}
    assert lab.committed() == 1


def test_04_killed_in_the_middle_of_a_store_write_keeps_rows_and_positions_together(
    lab: Lab,
) -> None:
    app = lab.ready_app(at="mid_store_write:2")
    lab.send("a")
    lab.wait_echoes(1)
    lab.send("b")
    assert wait_exit(app) == KILLED
    store = lab.store()
    mark = store.mark
    assert mark is not None
    assert mark.sources["resolutions"] == 1
    store.close()
    assert lab.count_of("k") == 1
    lab.ready_app().stop()
    assert lab.count_of("k") == 2


def test_killed_after_the_store_write_repeats_nothing(lab: Lab) -> None:
    counts = _crash_then_restart(lab, "after_store_write")
    assert counts == list(range(1, lab._sent + 1))


def test_killed_after_an_abort_buries_the_record_once(lab: Lab) -> None:
    app = lab.ready_app(at="after_abort")
    lab.send("a", "poison", "b")
    assert wait_exit(app) == KILLED
    lab.ready_app()
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]
    assert [letter.code for letter in lab.letters()] == ["fold_failed"]


@pytest.mark.fencing  # and a broker that notices a dead member
def test_killed_in_a_restore_goes_on_restoring(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send(*(str(number) for number in range(50)))
    lab.wait_echoes(50)
    app.kill()
    wiped = lab.app("b", at="mid_restore", settings={"restore_records_max": 10})
    assert wait_exit(wiped) == KILLED
    lab.ready_app("b").stop()
    assert lab.local_rows("b") == lab.logged_rows()
    assert lab.count_of("k", "b") == 50
    assert lab.read(CHANGELOG)


def test_a_clean_stop_gives_the_partitions_to_a_peer_at_once(lab: Lab) -> None:
    first = lab.ready_app("a", settings={"session_timeout_ms": 60_000, "poll_gap_ms_max": 60_000})
    lab.send("a")
    lab.wait_echoes(1)
    first.signal(signal.SIGTERM)
    assert wait_exit(first, 10) == 0
    lab.ready_app("b")
    lab.send("b")
    assert [echo.count for echo in lab.wait_echoes(2, 20)] == [1, 2]
