"""What a fresh read proves, what it does not, and whom the result is told."""

from __future__ import annotations

from processors.commits.state import ItemState
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
    LAGGING,
    UNKEYED,
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
