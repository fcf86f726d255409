"""A claim is followed by a call only in time; otherwise its outcome is "not executed"."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace

from connectors.capacity import Capacity
from connectors.claims import Claim, not_called, refusal, send_window_left_ms, started
from tallystick.protocol import SEND_WINDOW_MS
from tallystick.records import AttemptOutcome, AttemptPhase, Intent
from tests.commits.worlds import World, make_plan


def _intent() -> Intent:
    world = World(make_plan("a"))
    world.request()
    return replace(world.intents[0], expires_at_ms=10_000)


@pytest.mark.parametrize(
    ("logged_at_ms", "waited_ms", "why"),
    [
        (10_000, 0, ""),
        (10_001, 0, "expired"),
        (5_000, SEND_WINDOW_MS, ""),
        (5_000, SEND_WINDOW_MS + 1, "send_window_passed"),
        (10_001, SEND_WINDOW_MS + 1, "expired"),
    ],
)
def test_a_claim_is_refused_by_log_time_first_then_by_its_send_window(
    logged_at_ms: int, waited_ms: int, why: str
) -> None:
    claim = Claim(_intent(), claimed_boot_ms=1_000, partition=0, logged_at_ms=logged_at_ms)
    assert refusal(claim, 1_000 + waited_ms) == why


def test_what_is_left_of_the_send_window_is_never_negative() -> None:
    claim = Claim(_intent(), claimed_boot_ms=1_000, partition=0, logged_at_ms=0)
    assert send_window_left_ms(claim, 1_000) == SEND_WINDOW_MS
    assert send_window_left_ms(claim, 99_000) == 0


def test_the_records_of_a_claim_carry_its_intent_and_attempt() -> None:
    intent = _intent()
    claim = started(intent, "d0")
    refused = not_called(intent, "d0", "expired", "too late")
    assert (claim.phase, claim.outcome) == (AttemptPhase.STARTED, AttemptOutcome.PENDING)
    assert (refused.phase, refused.outcome) == (AttemptPhase.SETTLED, AttemptOutcome.NOT_EXECUTED)
    assert {r.intent_id for r in (claim, refused)} == {intent.intent_id}


def test_capacity_bounds_what_is_taken_and_wakes_who_waits() -> None:
    capacity = Capacity(2)
    assert capacity.wait_room(0) == 2
    capacity.take(2)
    assert capacity.wait_room(0) == 0
    threading.Timer(0.05, capacity.release).start()
    assert capacity.wait_room(10) == 1


def test_a_lower_limit_leaves_what_is_in_flight_alone() -> None:
    capacity = Capacity(4)
    capacity.take(3)
    capacity.limit(2)
    assert capacity.wait_room(0) == 0
    assert capacity.used == 3
