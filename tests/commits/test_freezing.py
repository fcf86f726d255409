"""Which plan stands under a key: the first, its repeats, its successors, and for how long."""

from __future__ import annotations

from processors.commits.state import ItemState
from tallystick.records import (
    AttemptOutcome,
    PlanVerdict,
)
from tests.commits.worlds import (
    NATURAL,
    UNREADABLE,
    World,
    make_plan,
)

OUT = AttemptOutcome


def test_the_same_plan_asked_twice_at_once_joins_the_first() -> None:
    world = World(make_plan("a"))
    first = world.request()
    second = world.request()

    assert (first.verdict, second.verdict) == (PlanVerdict.FROZEN, PlanVerdict.JOINED)
    assert first.round == second.round
    assert len(world.intents) == 1


def test_asking_after_the_receipt_gives_the_same_receipt_and_emits_no_second() -> None:
    world = World(make_plan("a"))
    world.request()
    world.write("a")
    world.read()

    again = world.request()

    assert again.verdict is PlanVerdict.COMPLETED
    assert again.receipt == world.receipts[0]
    assert len(world.receipts) == 1


def test_another_plan_under_the_key_is_drift_and_hands_back_the_frozen_one() -> None:
    frozen, other = make_plan("a"), make_plan("a", title="other")
    world = World(frozen)
    world.request()

    answer = world.request(other)

    assert answer.verdict is PlanVerdict.DRIFT
    assert answer.plan == frozen
    assert len(world.intents) == 1


def test_a_forged_hash_is_refused_and_nothing_is_frozen() -> None:
    plan = make_plan("a")
    world = World(plan)
    forged = make_plan("b")
    answer = world.request(
        type(plan)(
            commit_key=plan.commit_key,
            plan_hash=plan.plan_hash,
            evidence_hash=plan.evidence_hash,
            evidence_ref=None,
            contract=plan.contract,
            module=plan.module,
            items=forged.items,
            policies=plan.policies,
        )
    )

    assert answer.verdict is PlanVerdict.REFUSED
    assert answer.reason
    assert world.state is None


def test_a_superseding_plan_keeps_equal_items_and_their_keys() -> None:
    old, new = make_plan("a", "b"), make_plan("a", "c")
    world = World(old)
    world.request(within_ms=8_000)
    world.write("a")
    world.write("b", OUT.REJECTED)
    world.read({"a": 1})
    kept = world.item("a").intent_id

    answer = world.request(new, supersedes=old.plan_hash)
    assert answer.verdict is PlanVerdict.SUPERSEDED
    assert world.item("a").intent_id == kept
    assert world.last_intent("c").plan_hash == new.plan_hash
    world.write("c")
    world.read()
    assert world.receipts[-1].plan_hash == new.plan_hash
    assert {item.identity for item in world.receipts[-1].items} == {"a", "c"}


def test_superseding_is_refused_while_the_old_plan_works_or_leaves_an_effect_in_doubt() -> None:
    old, new = make_plan("a", policy=UNREADABLE), make_plan("b", policy=UNREADABLE)
    world = World(old)
    world.request()
    working = world.request(new, supersedes=old.plan_hash)
    assert working.reason == "supersede_while_working"
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    doubtful = world.request(new, supersedes=old.plan_hash)
    assert doubtful.reason == "supersede_in_doubt"


def test_a_naturally_idempotent_successor_overwrites_what_differs() -> None:
    old, new = make_plan("a", policy=NATURAL), make_plan("a", policy=NATURAL, title="new")
    world = World(old)
    world.request()
    world.write("a")
    world.read()
    world.request(new, supersedes=old.plan_hash)
    assert world.item("a").state is ItemState.CHECKING
    world.read(differing=("a",))
    world.write("a")
    world.read()
    assert world.receipts[-1].plan_hash == new.plan_hash


def test_an_ended_commit_is_retired_after_its_retention_and_its_key_is_never_reused() -> None:
    world = World(make_plan("a"))
    world.request()
    world.write("a")
    world.read()
    world.wait(31 * 24 * 3_600_000)
    answer = world.request()
    assert (answer.verdict, answer.reason) == (PlanVerdict.REFUSED, "key_retired")
    assert len(world.intents) == 1


def test_an_unknown_effect_is_never_pruned() -> None:
    world = World(make_plan("a", policy=UNREADABLE))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.wait(400 * 24 * 3_600_000)
    assert world.item("a").state is ItemState.UNKNOWN
