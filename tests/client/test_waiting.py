"""What a waiting caller makes of the records that come in, whatever their order."""

from __future__ import annotations

import pytest

from tallystick.client.waiting import Pending, Progress, Waiters
from tallystick.errors import DriftError, ExitCode, RefusedError, WaitTimeout
from tallystick.records import Attempt, AttemptOutcome, PlanAnswer, Receipt
from tests.commits.worlds import World, make_plan


def _pending(world: World, request_id: str = "r1") -> Pending:
    return Pending(commit_key="k", request_id=request_id, plan_hash=world.plan.plan_hash, planned=1)


def _story() -> tuple[World, PlanAnswer, Receipt]:
    world = World(make_plan("a"))
    answer = world.request()
    world.write("a")
    world.read()
    return world, answer, world.receipts[0]


def test_the_receipt_may_overtake_the_answer() -> None:
    world, answer, receipt = _story()
    pending = _pending(world)
    pending.take(receipt)
    assert not pending.future.done()
    pending.take(answer)
    assert pending.result(0) == receipt


def test_both_callers_of_one_plan_get_the_one_receipt() -> None:
    world, answer, receipt = _story()
    waiters = Waiters()
    first, second = _pending(world), _pending(world, "r2")
    waiters.add(first)
    waiters.add(second)
    joined = PlanAnswer(
        request_id="r2",
        commit_key="k",
        verdict=answer.verdict,
        reason="",
        round=1,
        deadline_at_ms=0,
        plan=answer.plan,
        receipt=None,
    )
    for record in (answer, joined, receipt):
        waiters.deliver("k", record)
    assert first.result(0) == second.result(0) == receipt
    assert not waiters.wants("k")


def test_a_partial_of_an_earlier_round_does_not_end_a_retry() -> None:
    world = World(make_plan("a"))
    world.request()
    world.write("a", AttemptOutcome.REJECTED)
    world.read({})
    old = world.partials[0]
    retry = world.request()
    pending = _pending(world, "r2")
    pending.take(retry)
    pending.take(old)
    assert not pending.future.done()
    world.read({"a": 1})
    pending.take(world.receipts[0])
    assert pending.result(0) == world.receipts[0]


def test_drift_raises_and_names_the_frozen_plan() -> None:
    world = World(make_plan("a"))
    world.request()
    answer = world.request(make_plan("b"))
    pending = _pending(world, "r2")
    pending.take(answer)
    with pytest.raises(DriftError) as caught:
        pending.result(0)
    assert caught.value.frozen == world.plan.plan_hash
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_refusal_names_the_broken_rule() -> None:
    world = World(make_plan("a"))
    answer = world.request(within_ms=1)
    pending = _pending(world)
    pending.take(answer)
    with pytest.raises(RefusedError, match="out of range") as caught:
        pending.result(0)
    assert caught.value.reason == "commit_within_out_of_range"


def test_a_timeout_says_how_far_the_commit_was() -> None:
    world = World(make_plan("a"))
    answer = world.request()
    pending = _pending(world)
    with pytest.raises(WaitTimeout, match="no worker") as caught:
        pending.result(0)
    assert caught.value.exit_code == ExitCode.UNKNOWN
    pending.take(answer)
    with pytest.raises(WaitTimeout, match="frozen"):
        pending.result(0)


def test_progress_counts_each_answered_item_once() -> None:
    world = World(make_plan("a", "b"))
    steps: list[Progress] = []
    pending = _pending(world)
    pending.on_progress = steps.append
    pending.take(world.request())
    for _ in range(2):
        for record in _settled(world):
            pending.take(record)
    assert next(step.what for step in steps) == "frozen"
    assert steps[-1].done == 2


def _settled(world: World) -> list[Attempt]:
    from tallystick.records import AttemptPhase

    return [
        world._fact(intent, AttemptPhase.SETTLED, AttemptOutcome.APPLIED)
        for intent in world.intents
    ]
