"""The commit protocol, fact by fact: what leaves, what is read, and how each round ends."""

from __future__ import annotations

import pytest

from tallystick.records import (
    AttemptOutcome,
    EvidenceKind,
    ItemStatus,
    PartialReason,
    PlanVerdict,
)
from tests.commits.worlds import (
    CERTIFYING,
    UNREADABLE,
    World,
    make_plan,
)

OUT = AttemptOutcome


def test_two_planned_and_one_verified_is_no_receipt_until_the_second_arrives() -> None:
    world = World(make_plan("a", "b"))
    world.request(within_ms=8_000)
    world.write("a")
    world.write("b")
    world.read({"a": 1})
    assert world.receipts == []

    for _ in range(3):
        if not world.reads[-1].items or world.partials:
            break
        world.wait(300)
        if world.state and world.state.head.open_read:
            world.read({"a": 1})
    (partial,) = world.partials
    assert [(item.identity, item.status) for item in partial.items] == [
        ("a", ItemStatus.APPLIED),
        ("b", ItemStatus.MISSING),
    ]

    assert world.request().verdict is PlanVerdict.RESUMED
    assert [item.identity for item in world.reads[-1].items] == ["b"]
    world.read({"b": 1})
    assert world.receipts[0].verified_count == 2


def test_a_retry_writes_only_the_missing_item_and_under_its_first_key() -> None:
    world = World(make_plan("a", "b"))
    world.request(within_ms=8_000)
    world.write("a")
    world.write("b", OUT.REJECTED)
    world.read({"a": 1})
    assert world.partials[0].reason is PartialReason.ITEMS_REJECTED
    before = len(world.intents)

    world.request()
    world.read({})
    retried = world.intents[before:]

    assert [intent.identity for intent in retried] == ["b"]
    assert retried[0].intent_id == world.intents[1].intent_id
    assert retried[0].attempt == 2


def test_an_acknowledgement_is_evidence_only_where_the_contract_says_so() -> None:
    for policy, receipts in ((UNREADABLE, 0), (CERTIFYING, 1)):
        world = World(make_plan("a", policy=policy))
        world.request()
        world.claim("a")
        world.answer("a", OUT.APPLIED, target_ref="case-7")
        assert len(world.receipts) == receipts
        if receipts == 0:
            assert world.partials[0].items[0].code == "cannot_be_read"
        else:
            assert world.receipts[0].items[0].evidence is EvidenceKind.ACKNOWLEDGEMENT


def test_not_executed_waits_at_least_as_long_as_the_target_asks() -> None:
    world = World(make_plan("a"))
    world.request()
    world.claim("a")
    world.answer("a", OUT.NOT_EXECUTED, "http_429", retry_after_ms=3_000)
    world.wait(2_999)
    assert len(world.intents) == 1
    world.wait(1)
    assert len(world.intents) == 2


def test_attempts_are_bounded_and_the_item_is_then_missing() -> None:
    world = World(make_plan("a"))
    world.request()
    for _ in range(4):
        world.claim("a")
        world.answer("a", OUT.NOT_EXECUTED, "http_503")
        world.wait(1_500)
    assert len(world.intents) == 4
    world.read({})

    (partial,) = world.partials
    assert partial.reason is PartialReason.ATTEMPTS_EXHAUSTED
    assert partial.items[0].code == "http_503"


@pytest.mark.parametrize("outcome", [OUT.APPLIED, OUT.UNKNOWN, OUT.REJECTED, OUT.NOT_EXECUTED])
def test_a_repeated_fact_changes_nothing(outcome: AttemptOutcome) -> None:
    world = World(make_plan("a", "b"))
    world.request()
    world.claim("a")
    world.answer("a", outcome, "x")
    if outcome is OUT.NOT_EXECUTED or outcome is OUT.UNKNOWN:
        world.wait(1_000)
    before, emitted = world.state, len(world.emits)
    intent = world.intents[0]
    world.claim("a", intent)
    world.answer("a", outcome, "x", intent=intent)
    assert world.state == before
    assert len(world.emits) == emitted
