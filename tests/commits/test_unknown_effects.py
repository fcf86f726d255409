"""Outcomes that are unknown: repeated under a key, read, held, escalated, settled by a person."""

from __future__ import annotations

from processors.commits.state import ItemState
from tallystick.protocol import SEND_WINDOW_MS
from tallystick.records import (
    AttemptOutcome,
    EvidenceKind,
    ItemStatus,
    PartialReason,
)
from tests.commits.worlds import (
    UNBOUNDED,
    UNKEYED,
    UNREADABLE,
    World,
    make_plan,
)

OUT = AttemptOutcome


def test_a_lost_acknowledgement_repeats_the_same_key_where_the_target_takes_one() -> None:
    world = World(make_plan("a"))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.wait(200)

    first, second = world.intents
    assert first.intent_id == second.intent_id
    assert (first.attempt, second.attempt) == (1, 2)


def test_a_lost_acknowledgement_without_a_key_is_read_and_never_repeated_while_in_doubt() -> None:
    world = World(make_plan("a", policy=UNKEYED))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    assert len(world.reads) == 1
    world.read({})
    world.wait(5_000)
    for _ in range(6):
        if world.state and world.state.head.open_read:
            world.read({})
        world.wait(500)

    assert len(world.intents) == 1, "the in-flight bound has not passed"

    bound_ms = 1_000_000 + SEND_WINDOW_MS + 10_000
    while len(world.intents) == 1:
        asked_at_ms = world.state.head.open_read_at_ms if world.state else 0
        world.read({})
        world.wait(500)
    assert bound_ms <= asked_at_ms <= bound_ms + 1_000
    assert world.intents[1].intent_id == world.intents[0].intent_id


def test_a_late_commit_seen_within_the_bound_is_not_written_again() -> None:
    world = World(make_plan("a", policy=UNKEYED))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.read({})
    world.wait(250)
    world.read({"a": 1})

    assert len(world.intents) == 1
    assert world.receipts[0].items[0].status is ItemStatus.APPLIED


def test_without_key_and_without_bound_a_miss_never_settles_the_unknown() -> None:
    world = World(make_plan("a", policy=UNBOUNDED))
    world.request(within_ms=10_000)
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    for _ in range(60):
        if world.partials:
            break
        if world.state and world.state.head.open_read:
            world.read({})
        world.wait(400)

    (partial,) = world.partials
    assert partial.reason is PartialReason.EFFECTS_UNKNOWN
    assert partial.items[0].status is ItemStatus.UNKNOWN
    assert len(world.intents) == 1

    world.request()
    assert len(world.intents) == 1, "a retry reads again; it does not write in doubt"


def test_neither_key_nor_read_is_escalated_at_once_and_a_person_settles_it() -> None:
    world = World(make_plan("a", policy=UNREADABLE))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    assert world.partials[0].reason is PartialReason.EFFECTS_UNKNOWN

    world.resolve("a", applied=True)

    (receipt,) = world.receipts
    assert receipt.items[0].evidence is EvidenceKind.RESOLUTION
    assert receipt.items[0].evidence_id == "res-1"


def test_a_person_who_says_absent_frees_the_item_for_the_retry_only() -> None:
    world = World(make_plan("a", policy=UNREADABLE))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.resolve("a", applied=False)
    assert len(world.intents) == 1
    assert world.partials[-1].items[0].status is ItemStatus.MISSING

    world.request()
    assert len(world.intents) == 2


def test_a_person_cannot_vouch_for_what_can_be_read() -> None:
    world = World(make_plan("a", policy=UNBOUNDED))
    world.request(within_ms=5_000)
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.resolve("a", applied=True)

    assert world.receipts == []
    world.read({})
    assert world.receipts == []


def test_a_claim_without_outcome_expires_into_unknown() -> None:
    world = World(make_plan("a", policy=UNKEYED))
    world.request()
    world.claim("a")
    world.wait(4_600)

    assert world.item("a").state is ItemState.UNKNOWN
    assert world.item("a").doubtful == (1,)
    assert world.item("a").code == "no_outcome"


def test_an_outcome_after_the_claim_expired_still_counts() -> None:
    world = World(make_plan("a", policy=UNKEYED))
    world.request()
    world.claim("a")
    world.wait(4_600)
    world.answer("a", OUT.APPLIED)

    assert world.item("a").state is ItemState.WRITTEN
    assert world.item("a").doubtful == ()


def test_rejected_after_an_attempt_in_doubt_stays_unknown_until_read() -> None:
    world = World(make_plan("a"))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.wait(200)
    world.claim("a")
    world.answer("a", OUT.REJECTED, "http_401")

    assert world.item("a").state is ItemState.UNKNOWN
    world.read({"a": 1})
    assert world.receipts[0].items[0].status is ItemStatus.APPLIED


def test_exists_after_an_attempt_in_doubt_is_our_own_write() -> None:
    world = World(make_plan("a"))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.wait(200)
    world.write("a", OUT.EXISTS)
    world.read()
    assert world.receipts[0].items[0].status is ItemStatus.APPLIED


def test_an_unclaimed_intent_ends_as_missing_at_the_deadline() -> None:
    world = World(make_plan("a"))
    world.request(within_ms=4_000)
    world.wait(3_600)
    world.read({})
    world.wait(500)

    (partial,) = world.partials
    assert partial.items[0].status is ItemStatus.MISSING
    assert partial.items[0].code == "never_dispatched"
    assert partial.reason is PartialReason.DEADLINE_PASSED


def test_a_claim_logged_after_expiry_is_not_followed() -> None:
    world = World(make_plan("a"))
    world.request(within_ms=4_000)
    world.wait(3_100)
    world.claim("a")
    assert world.item("a").state is ItemState.INTENDED


def test_a_fact_after_the_partial_opens_a_round_that_corrects_it() -> None:
    world = World(make_plan("a", policy=UNKEYED))
    world.request(within_ms=4_000)
    world.claim("a")
    world.wait(4_100)
    assert world.partials[0].items[0].status is ItemStatus.UNKNOWN

    world.answer("a", OUT.APPLIED)
    world.read()

    (receipt,) = world.receipts
    assert receipt.round == 2
    assert len(world.intents) == 1
