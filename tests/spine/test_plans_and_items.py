"""Drift, missing and different items, bad credentials, targets away: through the whole pipeline."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.errors import DriftError
from tallystick.records import ItemStatus, PartialReason, PartialSuccess, Receipt
from tallystick.topics import Topic
from tests.spine.conftest import House

pytestmark = pytest.mark.broker
OpenHouse = Callable[..., House]


def test_drift_is_refused_and_names_the_frozen_plan(open_house: OpenHouse) -> None:
    house = open_house()
    house.start()
    tally = house.tally()
    frozen = house.plan("TC-1")
    tally.commit(frozen, wait_s=30)

    with pytest.raises(DriftError) as caught:
        tally.commit(house.plan("TC-1", title="changed"), wait_s=30)

    assert caught.value.frozen == frozen.plan_hash
    assert len(house.target.ledger()) == 1


def test_missing_and_different_items_are_named_and_the_retry_completes_the_missing(
    open_house: OpenHouse,
) -> None:
    house = open_house()
    house.target.fault("reject", case_id="TC-2")
    house.target.fault("wrong_content", case_id="TC-3", count=1)
    house.start()
    tally = house.tally()
    plan = house.plan("TC-1", "TC-2", "TC-3")

    partial = tally.commit(plan, wait_s=30)

    assert isinstance(partial, PartialSuccess)
    assert [(item.identity, item.status) for item in partial.items] == [
        ("TC-1", ItemStatus.APPLIED),
        ("TC-2", ItemStatus.REJECTED),
        ("TC-3", ItemStatus.DIFFERENT),
    ]
    assert partial.items[2].differing == ("title",)
    assert partial.items[2].compensation == "delete_case"
    house.target.clear_faults()
    house.target.call("DELETE", "/modules/checkout/cases/TC-3")
    retry = tally.commit(plan, wait_s=30)
    # The key of TC-3 was used for the wrong content: the target replays its answer, so the item
    # stays missing until a new plan writes it under a new key.
    assert {item.identity: item.status for item in retry.items}["TC-2"] is ItemStatus.APPLIED
    assert house.target.copies()["TC-1"] == 1


def test_a_duplicate_delivery_without_keys_is_found_and_named(open_house: OpenHouse) -> None:
    house = open_house("cases-unkeyed")
    house.target.set(keys=False)
    house.target.fault("duplicate_delivery", case_id="TC-1")
    house.start()

    partial = house.tally().commit(house.plan("TC-1", "TC-2"), wait_s=30)

    assert isinstance(partial, PartialSuccess)
    assert partial.reason is PartialReason.ITEMS_DUPLICATED
    assert partial.items[0].status is ItemStatus.DUPLICATE
    assert len(partial.items[0].target_refs) == 2


def test_a_target_that_is_away_is_tried_with_backoff_and_leaves_no_doubt(
    open_house: OpenHouse,
) -> None:
    house = open_house()
    house.start()
    house.target.kill()

    partial = house.tally().commit(house.plan("TC-1"), commit_within_ms=6_000, wait_s=30)

    assert isinstance(partial, PartialSuccess)
    assert partial.items[0].status is ItemStatus.MISSING
    assert partial.items[0].attempts > 1
    assert partial.items[0].code == "connection_refused"


def test_wrong_credentials_are_rejected_without_a_retry(open_house: OpenHouse) -> None:
    house = open_house()
    house.target.set(token="right")
    house.start()

    partial = house.tally().commit(house.plan("TC-1"), commit_within_ms=6_000, wait_s=30)

    assert isinstance(partial, PartialSuccess)
    assert partial.items[0].status is ItemStatus.REJECTED
    assert partial.items[0].code == "http_401"
    assert partial.items[0].attempts == 1


def test_a_dispatcher_without_the_contract_refuses_and_says_so(open_house: OpenHouse) -> None:
    house = open_house()
    house.pieces.worker().start().wait_ready()
    other = open_house("cases-natural")
    other.pieces.dispatcher([other.contract_path]).start().wait_ready()
    house.pieces.reader([house.contract_path]).start().wait_ready()

    partial = house.tally().commit(house.plan("TC-1"), commit_within_ms=5_000, wait_s=30)

    assert isinstance(partial, PartialSuccess)
    assert partial.items[0].status is ItemStatus.MISSING
    assert partial.items[0].code == "contract_unavailable"
    assert house.target.ledger() == []


@pytest.mark.fencing
def test_two_workers_share_the_stage_and_one_takes_over_from_the_other(
    open_house: OpenHouse,
) -> None:
    house = open_house()
    house.start()
    second = house.pieces.worker("w1").start().wait_ready()
    tally = house.tally()
    pending = [tally.submit(house.plan(f"TC-{n}", key=f"job-{n}")) for n in range(8)]
    second.kill()
    for waiting in pending:
        assert isinstance(waiting.result(60), Receipt)
    assert len(house.records(Topic.RECEIPTS)) == 8
