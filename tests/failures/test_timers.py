"""Timers: a tick in the log wakes what is due, once, whoever owns the partition by then."""

from __future__ import annotations

import pytest

from streams.rows import parse_timer_row, pushed_row
from tests.failures.lab import KILLED, Lab, eventually, wait_exit
from tests.streams.toy import TICKS

pytestmark = pytest.mark.broker


def _woken(lab: Lab) -> list[str]:
    return [echo.note_id for echo in lab.echoes() if echo.text == "woke"]


def test_a_timer_goes_off_once_and_not_before_it_is_due(lab: Lab) -> None:
    app = lab.ready_app()
    lab.send("timer:300")
    set_at, woke_at = (echo.at_ms for echo in lab.wait_echoes(2))
    assert woke_at >= set_at + 300
    app.stop()
    assert _woken(lab) == ["woke k"]
    assert not [row for row in lab.local_rows() if row.startswith(b"t")]
    assert lab.local_rows() == lab.logged_rows()


def test_without_a_timer_no_tick_is_logged(lab: Lab) -> None:
    lab.ready_app().stop()
    assert lab.read(TICKS, committed=False) == []


@pytest.mark.fencing  # and a broker that notices a dead member
def test_27_a_timer_that_falls_due_while_nobody_owns_the_partition_goes_off_at_the_next_owner(
    lab: Lab,
) -> None:
    app = lab.ready_app("a")
    lab.send("timer:500")
    lab.wait_echoes(1)
    app.kill()
    lab.ready_app("b")
    eventually("it goes off", lambda: _woken(lab))
    lab.send("x")
    lab.wait_echoes(3)
    assert _woken(lab) == ["woke k"]


@pytest.mark.parametrize(
    "at",
    [
        # The embedded broker goes on naming an aborted transaction to consumers that are past it,
        # so they drop what the same producer commits afterwards.
        pytest.param("before_send_offsets:2", marks=pytest.mark.fencing),
        "after_commit",
        "after_commit:2",
    ],
)
def test_a_timer_goes_off_once_though_the_worker_is_killed_around_its_tick(
    lab: Lab, at: str
) -> None:
    app = lab.ready_app(at=at)
    lab.send("timer:200")
    assert wait_exit(app) == KILLED
    lab.ready_app()
    eventually("it goes off", lambda: _woken(lab))
    lab.send("x")
    lab.wait_echoes(3)
    assert _woken(lab) == ["woke k"]


def test_more_timers_than_one_transaction_holds_all_go_off_in_order_of_time(lab: Lab) -> None:
    keys = [f"key-{number}" for number in range(10)]
    for number, key in enumerate(keys):
        lab.send(f"timer:{1_000 - 10 * number}", key=key)
    lab.ready_app(settings={"wakes_max": 3}).wait_ready()
    lab.wait_echoes(20)
    assert sorted(_woken(lab)) == sorted(f"woke {key}" for key in keys)
    lab._apps[-1].stop()
    assert lab.local_rows() == lab.logged_rows()


def test_a_wake_that_raises_is_buried_and_parked_and_the_others_go_off(lab: Lab) -> None:
    lab.send("wake-poison:200", key="bad")
    lab.send("timer:200", key="good")
    app = lab.ready_app()
    eventually("the good one goes off", lambda: _woken(lab) == ["woke good"])
    (letter,) = eventually("the bad one is buried", lab.letters)
    assert (letter.source_topic, letter.key, letter.code) == (TICKS, b"bad", "fold_failed")
    app.stop()
    (timer,) = [row for row in lab.local_rows() if row.startswith(b"t")]
    parked_until_ms, key = parse_timer_row(timer)
    assert key == "bad"
    assert parked_until_ms > lab.echoes()[-1].at_ms + 30_000
    assert pushed_row("bad") in lab.local_rows()
    again = lab.ready_app()
    lab.send("x", key="bad")
    lab.wait_echoes(4)
    again.stop()
    assert len(lab.letters()) == 1
    assert lab.local_rows() == lab.logged_rows()
