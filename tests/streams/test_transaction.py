"""What a transactional error asks for (engine rule 10)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from streams.transaction import Fault, TransactionFatal, classify


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (KafkaError(KafkaError.ILLEGAL_GENERATION, txn_requires_abort=True), Fault.ABORTABLE),
        (KafkaError(KafkaError.UNKNOWN_MEMBER_ID, txn_requires_abort=True), Fault.ABORTABLE),
        (KafkaError(KafkaError._FENCED, fatal=True), Fault.FATAL),
        (KafkaError(KafkaError._FENCED, fatal=True, txn_requires_abort=True), Fault.FATAL),
        (KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, retriable=True), Fault.RETRIABLE),
        (KafkaError(KafkaError._TIMED_OUT), Fault.RETRIABLE),
        (KafkaError(KafkaError._STATE), Fault.FATAL),  # none of the three marks
    ],
)
def test_an_error_asks_for_what_its_marks_say(error: KafkaError, fault: Fault) -> None:
    assert classify(error) is fault


def test_a_fenced_slot_and_an_expired_id_are_told_apart() -> None:
    fenced = TransactionFatal(KafkaError(KafkaError._FENCED, fatal=True), "id")
    expired = TransactionFatal(KafkaError(KafkaError.INVALID_PRODUCER_ID_MAPPING), "id")
    assert (fenced.fenced, fenced.expired) == (True, False)
    assert (expired.fenced, expired.expired) == (False, True)
    assert "no other worker uses this slot" in str(fenced)
