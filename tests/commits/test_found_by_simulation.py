"""Faults of the fold that the simulator found, each in the fewest facts that show it."""

from __future__ import annotations

from msgspec.structs import replace

from tallystick.records import AttemptOutcome, ItemStatus, KeyStyle, PlanVerdict
from tests.commits.worlds import KEYED, LAGGING, NATURAL, World, make_plan

OUT = AttemptOutcome
LAG_MS = LAGGING.visibility_lag_ms


def test_a_successor_waits_until_the_old_write_must_be_visible_before_it_believes_a_miss() -> None:
    """Else an unkeyed item was written a second time beside its old content."""
    policy = replace(LAGGING, key_style=KeyStyle.NONE)
    old, new = (make_plan("a", policy=policy, title=title) for title in ("old", "new"))
    world = World(old)
    world.request(within_ms=2_000)
    world.now += 1_400
    world.write("a")
    world.wait(700)
    assert [item.status for item in world.partials[0].items] == [ItemStatus.UNKNOWN]
    intents = len(world.intents)

    answer = world.request(new, supersedes=old.plan_hash)
    world.read({"a": 0})
    assert answer.verdict is PlanVerdict.SUPERSEDED
    assert len(world.intents) == intents

    world.wait(LAG_MS)
    world.read(differing=("a",))
    assert world.partials[-1].items[0].status is ItemStatus.DIFFERENT
    assert len(world.intents) == intents


def test_a_successors_own_key_does_not_make_a_miss_safe() -> None:
    """A keyed item that was changed goes out under a new key, which the target never saw."""
    old, new = (make_plan("a", "b", policy=LAGGING, title=title) for title in ("old", "new"))
    world = World(old)
    world.request()
    world.write("a")
    world.write("b", OUT.REJECTED)
    world.read({"a": 1, "b": 0})
    assert world.partials[-1].items[0].status is ItemStatus.APPLIED
    intents = len(world.intents)

    world.request(new, supersedes=old.plan_hash)
    world.read({"a": 0, "b": 0})

    assert len(world.intents) == intents


def test_a_read_that_is_answered_after_the_cutoff_leaves_a_doubt_unknown() -> None:
    """The transition was missing: the partition stopped."""
    world = World(make_plan("a", policy=replace(KEYED, in_flight_ms=None, attempts_max=1)))
    world.request(within_ms=2_000)
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.wait(3_000)
    assert world.partials[-1].items[0].status is ItemStatus.UNKNOWN

    world.request(within_ms=2_000)
    world.now += 1_600
    world.read({"a": 0})
    world.wait(1_000)

    assert world.partials[-1].round == 2
    assert world.partials[-1].items[0].status is ItemStatus.UNKNOWN
    assert len(world.intents) == 1


def test_what_was_to_be_overwritten_and_never_was_is_different_and_not_missing() -> None:
    old, new = (make_plan("a", policy=NATURAL, title=title) for title in ("old", "new"))
    world = World(old)
    world.request()
    world.write("a")
    world.read()
    world.request(new, within_ms=2_000, supersedes=old.plan_hash)
    world.read(differing=("a",))
    assert world.last_intent("a").plan_hash == new.plan_hash

    world.now += 2_500
    world.wait(0)

    (item,) = world.partials[-1].items
    assert item.status is ItemStatus.DIFFERENT
    assert item.differing == ("title",)


def test_a_round_that_a_late_fact_opened_may_be_given_up_beside_a_different_item() -> None:
    """An item that had ended as different was to differ once more: the partition stopped."""
    policy = replace(NATURAL, readback=LAGGING.readback, visibility_lag_ms=LAG_MS, attempts_max=1)
    world = World(make_plan("a", "b", policy=policy))
    world.request(within_ms=10_000)
    world.write("a")
    world.claim("b")
    world.answer("b", OUT.UNKNOWN, "timeout")
    while not world.partials:
        world.read({"a": 1, "b": 0}, differing=("a",))
        world.wait(1_000)
    assert world.partials[-1].items[0].status is ItemStatus.DIFFERENT

    world.answer("b", OUT.APPLIED)
    world.wait(40_000)

    assert world.partials[-1].round == 2
    assert world.partials[-1].items[0].status is ItemStatus.DIFFERENT
