"""A partition's owner knows log time only by its own ticks, and sends one at a time."""

from __future__ import annotations

from streams.ticks import LogClock, TickGate


def test_a_clock_that_is_ahead_of_the_log_is_corrected_by_its_first_tick() -> None:
    clock = LogClock(lambda: 10_000)
    assert clock.now_ms() == 10_000
    clock.learn(owner_ms=10_000, log_ms=5_003)
    assert clock.now_ms() == 5_003


def test_the_least_delay_counts_and_old_samples_are_forgotten() -> None:
    clock = LogClock(lambda: 0)
    for delay_ms in (40, 3, 60):
        clock.learn(0, delay_ms)
    assert clock.skew_ms == 3
    for _ in range(8):
        clock.learn(0, 100)
    assert clock.skew_ms == 100


def test_a_gate_waits_for_the_due_time_and_for_its_own_tick() -> None:
    gate = TickGate(gap_ms=0)
    assert gate.wait_s(None, 1_000) is None
    assert gate.wait_s(3_000, 1_000) == 2.0
    assert gate.wait_s(500, 1_000) == 0.0
    gate.sent()
    assert gate.wait_s(500, 1_000) is None
    gate.came_back()
    assert gate.wait_s(500, 1_000) == 0.0


def test_two_ticks_keep_a_gap() -> None:
    gate = TickGate(gap_ms=3_600_000)
    gate.sent()
    gate.came_back()
    wait_s = gate.wait_s(0, 1_000)
    assert wait_s is not None
    assert wait_s > 3_000
