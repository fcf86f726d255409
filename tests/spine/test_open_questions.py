"""What the article's author left open, on a real broker with real crashes (seed 000, its end)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from tallystick.records import (
    AttemptOutcome,
    AttemptPhase,
    ItemStatus,
    PartialReason,
    PartialSuccess,
    PlanVerdict,
    Receipt,
)
from tallystick.topics import Topic, full_name
from tests.spine.conftest import House

pytestmark = pytest.mark.broker
TEN = tuple(f"TC-{n}" for n in range(1, 11))
OpenHouse = Callable[..., House]


def test_concurrent_commit_of_one_plan_writes_once_and_gives_both_the_one_receipt(
    open_house: OpenHouse,
) -> None:
    house = open_house()
    house.start()
    plan = house.plan(*TEN)
    first, second = house.tally(), house.tally()
    endings: list[object] = [None, None]

    def ask(index: int) -> None:
        endings[index] = (first, second)[index].commit(plan, wait_s=40)

    callers = [threading.Thread(target=ask, args=(index,)) for index in (0, 1)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert isinstance(endings[0], Receipt)
    assert endings[0] == endings[1]
    assert len(house.target.ledger()) == 10
    assert len(house.records(Topic.RECEIPTS)) == 1
    verdicts = sorted(answer.verdict for answer in house.records(Topic.PLANS))
    assert verdicts in (
        [PlanVerdict.FROZEN, PlanVerdict.JOINED],
        sorted([PlanVerdict.FROZEN, PlanVerdict.COMPLETED]),
    )


@pytest.mark.parametrize("kind", ["cases-keyed", "cases-unkeyed"])
def test_killed_before_outcome_is_recorded_writes_nothing_twice(
    open_house: OpenHouse, kind: str
) -> None:
    """Engine failure test 36: killed after the remote call, before the result record."""
    house = open_house(kind)
    _, dispatcher, _ = house.start(env={"TALLYSTICK_CRASH": "after_call"})
    plan = house.plan("TC-1")
    pending = house.tally().submit(plan)

    house.wait_for(lambda: dispatcher.returncode is not None)
    assert dispatcher.returncode == -signal.SIGKILL
    assert len(house.target.ledger()) == 1
    house.pieces.dispatcher([house.contract_path]).start().wait_ready()
    receipt = pending.result(50)

    assert isinstance(receipt, Receipt)
    assert house.target.copies() == {"TC-1": 1}
    outcomes = [
        attempt.outcome
        for attempt in house.records(Topic.ATTEMPTS)
        if attempt.phase is AttemptPhase.SETTLED and attempt.attempt == 1
    ]
    assert outcomes == [], "the first outcome was lost with its dispatcher"
    if kind == "cases-unkeyed":
        assert len(house.records(Topic.INTENTS)) == 1, "read back, not written again"


def test_receipt_lost_on_its_way_is_given_again_as_it_was(open_house: OpenHouse) -> None:
    house = open_house()
    house.start()
    plan = house.plan(*TEN)
    lost = house.tally()
    lost.submit(plan)
    lost.close()
    house.wait_for(lambda: house.records(Topic.RECEIPTS))

    again = house.tally().commit(plan, wait_s=20)

    assert again == house.records(Topic.RECEIPTS)[0]
    assert len(house.records(Topic.RECEIPTS)) == 1
    assert len(house.target.ledger()) == 10


def test_readback_late_within_the_deadline_gives_a_receipt_after_bounded_backoff(
    open_house: OpenHouse,
) -> None:
    house = open_house("cases-lagging")
    house.target.fault("slow_readback", lag_ms=2_000)
    house.start()

    ending = house.tally().commit(house.plan("TC-1", "TC-2"), commit_within_ms=20_000, wait_s=30)

    assert isinstance(ending, Receipt)
    reads = len(house.records(Topic.READBACK_REQUESTS))
    assert 2 <= reads <= 10, "bounded backoff, not polling"
    assert house.target.copies() == {"TC-1": 1, "TC-2": 1}


def test_readback_late_past_the_deadline_gives_a_partial_that_a_retry_completes(
    open_house: OpenHouse,
) -> None:
    house = open_house("cases-lagging")
    house.target.fault("slow_readback", lag_ms=9_000)
    house.start()
    tally = house.tally()
    plan = house.plan("TC-1", "TC-2")

    partial = tally.commit(plan, commit_within_ms=4_000, wait_s=30)

    assert isinstance(partial, PartialSuccess)
    assert partial.reason is PartialReason.NOT_FOUND
    assert {item.status for item in partial.items} == {ItemStatus.MISSING}
    house.target.clear_faults()
    house.wait_for(lambda: len(house.target.call("GET", "/modules/checkout/cases")["cases"]) == 2)
    receipt = tally.commit(plan, wait_s=30)
    assert isinstance(receipt, Receipt)
    assert house.target.copies() == {"TC-1": 1, "TC-2": 1}


def test_worker_killed_mid_plan_is_replaced_and_the_receipt_still_comes(
    open_house: OpenHouse,
) -> None:
    house = open_house()
    worker, _, _ = house.start()
    house.target.fault("latency", delay_ms=150)
    pending = house.tally().submit(house.plan(*TEN))
    house.wait_for(lambda: house.target.ledger())
    worker.kill()
    house.pieces.worker("w0").start().wait_ready()

    receipt = pending.result(50)

    assert isinstance(receipt, Receipt)
    assert house.target.duplicates() == 0
    assert len(house.records(Topic.RECEIPTS)) == 1


def test_a_dispatcher_stopped_between_claim_and_call_does_not_call_when_it_wakes(
    open_house: OpenHouse,
) -> None:
    house = open_house("cases-unkeyed")
    _, dispatcher, _ = house.start(env={"TALLYSTICK_STOP": "after_claim"})
    pending = house.tally().submit(house.plan("TC-1"), commit_within_ms=30_000)
    house.wait_for(lambda: house.records(Topic.ATTEMPTS))
    house.wait_for(lambda: len(house.records(Topic.INTENTS)) == 2, 30)
    assert house.target.ledger() == []
    dispatcher.signal(signal.SIGCONT)

    receipt = pending.result(50)

    assert isinstance(receipt, Receipt)
    assert house.target.copies() == {"TC-1": 1}
    refused = [a for a in house.records(Topic.ATTEMPTS) if a.code == "send_window_passed"]
    assert [a.outcome for a in refused] == [AttemptOutcome.NOT_EXECUTED]


def test_killed_between_claim_and_call_loses_no_item(open_house: OpenHouse) -> None:
    """The claim is logged, the call never made: only the ledger may issue it again."""
    house = open_house("cases-unkeyed")
    _, dispatcher, _ = house.start(env={"TALLYSTICK_CRASH": "after_claim"})
    pending = house.tally().submit(house.plan("TC-1"))
    house.wait_for(lambda: dispatcher.returncode is not None)
    assert house.target.ledger() == []
    house.pieces.dispatcher([house.contract_path]).start().wait_ready()

    receipt = pending.result(50)

    assert isinstance(receipt, Receipt)
    assert receipt.items[0].attempts == 2
    assert house.target.copies() == {"TC-1": 1}


def test_reader_killed_after_its_read_reads_again(open_house: OpenHouse) -> None:
    house = open_house()
    house.pieces.worker().start().wait_ready()
    house.pieces.dispatcher([house.contract_path]).start().wait_ready()
    crashing = {"TALLYSTICK_CRASH": "after_read"}
    reader = house.pieces.reader([house.contract_path], env=crashing).start().wait_ready()
    pending = house.tally().submit(house.plan("TC-1"))
    house.wait_for(lambda: reader.returncode is not None)
    house.pieces.reader([house.contract_path]).start().wait_ready()

    assert isinstance(pending.result(50), Receipt)
    assert len(house.records(Topic.READBACK_REQUESTS)) == 1, "the same request, read again"


def test_an_undecodable_intent_is_kept_aside_and_blocks_nothing(open_house: OpenHouse) -> None:
    house = open_house()
    house.start()
    rubbish = Producer({"bootstrap.servers": house.bootstrap})
    for topic in (Topic.INTENTS, Topic.READBACK_REQUESTS, Topic.ATTEMPTS):
        rubbish.produce(full_name(house.prefix, topic), key=b"job-1", value=b"\x00rubbish")
    rubbish.flush(10)

    receipt = house.tally().commit(house.plan("TC-1"), wait_s=40)

    assert isinstance(receipt, Receipt)
    letters = house.wait_for(
        lambda: found if len(found := house.records(Topic.DEAD_LETTERS)) == 3 else None
    )
    assert {letter.source_topic for letter in letters} == {
        Topic.INTENTS,
        Topic.READBACK_REQUESTS,
        Topic.ATTEMPTS,
    }
    assert {letter.value for letter in letters} == {b"\x00rubbish"}
