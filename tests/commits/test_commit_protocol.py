"""The commit protocol, fact by fact: what leaves, what is read, and how each round ends."""

from __future__ import annotations

import pytest

from processors.commits.state import ItemState
from tallystick.protocol import SEND_WINDOW_MS
from tallystick.records import (
    AttemptOutcome,
    Effect,
    EffectStatus,
    EvidenceKind,
    ItemStatus,
    Mutation,
    MutationPhase,
    PartialReason,
    PlanVerdict,
    Verification,
)
from tests.commits.worlds import (
    CERTIFYING,
    LAGGING,
    NATURAL,
    UNBOUNDED,
    UNKEYED,
    UNREADABLE,
    World,
    make_plan,
)

OUT = AttemptOutcome


def test_all_items_verified_by_a_fresh_read_gives_one_receipt() -> None:
    world = World(make_plan("a", "b"))

    assert world.request().verdict is PlanVerdict.FROZEN
    assert [intent.identity for intent in world.intents] == ["a", "b"]
    world.write("a")
    assert world.reads == []
    world.write("b")
    assert [item.identity for item in world.reads[0].items] == ["a", "b"]
    world.read()

    (receipt,) = world.receipts
    assert receipt.verified_count == receipt.planned_count == 2
    assert {item.identity: item.evidence for item in receipt.items} == {
        "a": EvidenceKind.READBACK,
        "b": EvidenceKind.READBACK,
    }
    assert receipt.items[0].evidence_id == world.reads[0].request_id
    assert world.partials == []


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


def test_different_content_and_a_duplicate_are_named_and_do_not_cancel_out() -> None:
    world = World(make_plan("a", "b", "c"))
    world.request()
    for name in "abc":
        world.write(name)
    world.read({"a": 2, "b": 1, "c": 1}, differing=("b",))

    (partial,) = world.partials
    assert [item.status for item in partial.items] == [
        ItemStatus.DUPLICATE,
        ItemStatus.DIFFERENT,
        ItemStatus.APPLIED,
    ]
    assert partial.reason is PartialReason.ITEMS_DUPLICATED
    assert partial.items[1].differing == ("title",)
    assert [item.compensation for item in partial.items[:2]] == ["delete_case"] * 2
    assert (partial.verified_count, partial.written_count) == (1, 3)


def test_an_item_that_stood_there_before_says_so_in_the_receipt() -> None:
    world = World(make_plan("a"))
    world.request()
    world.write("a", OUT.EXISTS)
    world.read()
    assert world.receipts[0].items[0].status is ItemStatus.EXISTED_BEFORE


def test_exists_after_an_attempt_in_doubt_is_our_own_write() -> None:
    world = World(make_plan("a"))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    world.wait(200)
    world.write("a", OUT.EXISTS)
    world.read()
    assert world.receipts[0].items[0].status is ItemStatus.APPLIED


def test_a_read_asked_for_before_the_last_write_does_not_count() -> None:
    world = World(make_plan("a", policy=UNKEYED))
    world.request()
    world.claim("a")
    world.answer("a", OUT.UNKNOWN, "timeout")
    stale = world.reads[-1]
    world.read({})
    world.wait(15_000)
    world.read({})  # conclusive: written again
    world.write("a")
    world.read({"a": 0}, request=stale)

    assert world.item("a").state is ItemState.WRITTEN
    assert world.receipts == []


def test_a_late_read_back_backs_off_then_gives_the_receipt() -> None:
    world = World(make_plan("a", policy=LAGGING))
    world.request(within_ms=20_000)
    world.write("a")
    reads = 0
    for _ in range(20):
        if world.now > 1_006_000:
            break
        if world.state and world.state.head.open_read:
            reads += 1
            world.read({})
        world.wait(500)
    while world.state and not world.state.head.open_read:
        world.wait(500)
    world.read({"a": 1})

    assert 3 <= reads <= 9
    assert world.receipts[0].verified_count == 1


def test_a_read_back_later_than_the_deadline_gives_a_partial() -> None:
    world = World(make_plan("a", policy=LAGGING))
    world.request(within_ms=8_000)
    world.write("a")
    for _ in range(40):
        if world.partials:
            break
        if world.state and world.state.head.open_read:
            world.read({})
        world.wait(250)

    (partial,) = world.partials
    assert partial.items[0].status is ItemStatus.MISSING
    assert partial.items[0].code == "acknowledged_not_found"


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


def test_epochs_open_at_the_first_dispatch_and_settle_with_the_last_answer() -> None:
    world = World(make_plan("a", "b", policy=UNKEYED))
    world.request()
    world.claim("a")
    world.claim("b")
    world.answer("a", OUT.APPLIED)
    world.answer("b", OUT.UNKNOWN, "timeout")
    phases = [mutation.phase for mutation in world.all(Mutation)]
    assert phases == [MutationPhase.OPENED], "an unknown effect keeps the scope unsettled"

    world.read()
    phases = [mutation.phase for mutation in world.all(Mutation)]
    assert phases == [MutationPhase.OPENED, MutationPhase.SETTLED]


def test_the_session_learns_each_change_of_an_effect_once() -> None:
    world = World(make_plan("a"))
    world.request()
    world.write("a")
    world.read()
    assert [effect.status for effect in world.all(Effect)] == [
        EffectStatus.DISPATCHED,
        EffectStatus.ACKNOWLEDGED,
        EffectStatus.APPLIED,
    ]


def test_every_read_is_a_verification_record_that_rounds_nothing_up() -> None:
    world = World(make_plan("a", "b"))
    world.request()
    world.write("a")
    world.write("b")
    world.read({"a": 1}, unplanned=("z",))

    (seen,) = world.all(Verification)
    assert (seen.verified_count, seen.planned_count) == (1, 2)
    assert [item.status for item in seen.items] == [ItemStatus.APPLIED, ItemStatus.UNKNOWN]
    assert [found.identity for found in seen.unplanned] == ["z"]


def test_what_a_later_listing_shows_of_the_plan_itself_is_not_beside_the_plan() -> None:
    world = World(make_plan("a", "b"))
    world.request()
    world.write("a")
    world.write("b")
    world.read({"a": 1})
    world.wait(300)
    world.read({"b": 1}, unplanned=("a", "z"))
    assert [seen.identity for seen in world.receipts[0].unplanned] == ["z"]


def test_a_target_that_cannot_be_read_is_asked_again_with_backoff_until_the_deadline() -> None:
    world = World(make_plan("a"))
    world.request(within_ms=6_000)
    world.write("a")
    for _ in range(60):
        if world.partials:
            break
        if world.state and world.state.head.open_read:
            world.read(error="target_away")
        world.wait(100)

    assert 3 < len(world.reads) < 12
    assert world.partials[0].items[0].status is ItemStatus.UNKNOWN
    assert world.partials[0].items[0].code == "target_away"


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
