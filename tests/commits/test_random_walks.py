"""Any order of facts, true or absurd, keeps the fold's promises."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from processors.commits.state import ItemState, Phase
from processors.commits.timing import can_repeat
from tallystick.records import AttemptOutcome
from tests.commits.worlds import (
    CERTIFYING,
    KEYED,
    LAGGING,
    NATURAL,
    UNBOUNDED,
    UNKEYED,
    UNREADABLE,
    World,
    make_plan,
)

NAMES = ("a", "b", "c")
POLICIES = (KEYED, UNKEYED, UNBOUNDED, LAGGING, UNREADABLE, CERTIFYING, NATURAL)
OUTCOMES = [outcome for outcome in AttemptOutcome if outcome is not AttemptOutcome.PENDING]

name = st.sampled_from(NAMES)
step = st.one_of(
    st.tuples(st.just("request"), st.booleans()),
    st.tuples(st.just("claim"), name, st.integers(0, 5)),
    st.tuples(st.just("answer"), name, st.integers(0, 5), st.sampled_from(OUTCOMES)),
    st.tuples(st.just("read"), st.dictionaries(name, st.integers(0, 2)), st.booleans()),
    st.tuples(st.just("wait"), st.integers(1, 8_000)),
    st.tuples(st.just("resolve"), name, st.booleans()),
)


def _take(world: World, action: Any) -> None:
    kind, *rest = action
    if kind == "request":
        other = make_plan("a", "z", policy=world.plan.policies[0], title="u")
        current = world.state.plan if world.state else None
        supersedes = current.plan_hash if rest[0] and current is not None else None
        world.request(other if rest[0] else world.plan, 9_000, supersedes)
        return
    if world.state is None or world.state.head.phase is Phase.RETIRED:
        return
    if kind == "wait":
        world.wait(rest[0])
    elif kind == "read" and world.reads:
        world.read(rest[0], error="away" if rest[1] else "")
    elif kind in ("claim", "answer"):
        sent = [intent for intent in world.intents if intent.identity == rest[0]]
        if sent:
            intent = sent[min(rest[1], len(sent) - 1)]
            if kind == "claim":
                world.claim(rest[0], intent)
            else:
                world.answer(rest[0], rest[2], "x", intent=intent, target_ref="t")
    elif kind == "resolve":
        names = [planned.identity for planned in world.state.plan.items]
        if rest[0] in names:
            world.resolve(rest[0], applied=rest[1])


def _check(world: World) -> None:
    keys = Counter((intent.intent_id, intent.attempt) for intent in world.intents)
    assert max(keys.values(), default=1) == 1, "an attempt number leaves the outbox once"
    by_plan = Counter(receipt.plan_hash for receipt in world.receipts)
    assert max(by_plan.values(), default=1) == 1, "one receipt a plan"
    rounds = Counter(
        (ending.plan_hash, ending.round) for ending in (*world.receipts, *world.partials)
    )
    assert max(rounds.values(), default=1) == 1, "one ending a round"
    reads = Counter(request.request_id for request in world.reads)
    assert max(reads.values(), default=1) == 1, "a read's id is never used again"
    for receipt in world.receipts:
        assert receipt.verified_count == receipt.planned_count == len(receipt.items)
    state = world.state
    if state is None:
        return
    for index, item in enumerate(state.head.items):
        if item.state is ItemState.VERIFIED:
            assert not item.doubtful
        if item.state in (ItemState.INTENDED, ItemState.BACKOFF) and item.doubtful:
            assert can_repeat(state.policy(index)), "in doubt, only a key may go out again"
        if item.state is ItemState.DISPATCHED:
            assert state.head.phase is Phase.WORKING
    if state.head.phase is Phase.WORKING:
        due = world.fold.due_ms(state)
        assert due is not None
        assert due <= state.head.answer_by_ms


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(POLICIES), st.lists(step, max_size=40))
def test_any_sequence_of_facts_keeps_the_promises(policy: Any, actions: list[Any]) -> None:
    world = World(make_plan(*NAMES, policy=policy))
    world.request(within_ms=9_000)
    for action in actions:
        _take(world, action)
        _check(world)
    if world.state is not None and world.state.head.phase is Phase.WORKING:
        world.wait(60_000)
        assert world.state is not None
        assert world.state.head.phase is not Phase.WORKING, "every round ends by its deadline"
    _check(world)
