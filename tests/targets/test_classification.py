"""The classification table, row by row, and what a contract's own word changes."""

from __future__ import annotations

import pytest

from connectors.targets.classify import WireFault, classify_fault, classify_status
from connectors.targets.retry_after import RETRY_AFTER_MS_MAX, retry_after_ms
from tallystick.contracts import Answer
from tallystick.records import AttemptOutcome, ErrorClass, KeyStyle

A, R, N, U, E = "applied", "rejected", "not_executed", "unknown", "exists"
ROWS = [
    # status, outcome, error class
    (200, A, "none"),
    (201, A, "none"),
    (202, U, "none"),
    (204, A, "none"),
    (207, U, "none"),
    (301, U, "setup"),
    (302, U, "setup"),
    (303, U, "setup"),
    (304, U, "setup"),
    (307, R, "setup"),
    (308, R, "setup"),
    (400, R, "schema"),
    (401, R, "permission"),
    (402, R, "business"),
    (403, R, "permission"),
    (404, R, "business"),
    (405, R, "setup"),
    (406, R, "schema"),
    (407, R, "setup"),
    (408, U, "transient"),
    (409, E, "business"),
    (410, R, "business"),
    (411, R, "schema"),
    (412, R, "business"),
    (413, R, "schema"),
    (414, R, "schema"),
    (415, R, "schema"),
    (422, R, "schema"),
    (423, N, "transient"),
    (424, R, "business"),
    (425, N, "transient"),
    (426, R, "setup"),
    (428, R, "schema"),
    (429, N, "transient"),
    (431, R, "schema"),
    (451, R, "permission"),
    (499, U, "transient"),
    (500, U, "transient"),
    (501, U, "transient"),
    (502, U, "transient"),
    (503, N, "transient"),
    (504, U, "transient"),
    (520, U, "transient"),
    (599, U, "transient"),
    (600, U, "transient"),
    (999, U, "transient"),
    (0, U, "transient"),
]


@pytest.mark.parametrize(("status", "outcome", "error_class"), ROWS)
def test_a_status_means_what_the_table_says(status: int, outcome: str, error_class: str) -> None:
    verdict = classify_status(status, KeyStyle.NONE, {})

    assert (verdict.outcome, verdict.error_class) == (outcome, error_class)


@pytest.mark.parametrize("style", [KeyStyle.HEADER, KeyStyle.FIELD])
def test_a_conflict_under_a_key_is_a_request_still_being_worked_on(style: KeyStyle) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, section 2.7."""
    assert classify_status(409, style, {}).outcome is AttemptOutcome.UNKNOWN


def test_a_natural_conflict_says_that_the_item_exists() -> None:
    assert classify_status(409, KeyStyle.NATURAL, {}).outcome is AttemptOutcome.EXISTS


@pytest.mark.parametrize("answer", list(Answer))
@pytest.mark.parametrize("status", [200, 409, 422, 500, 503])
def test_the_contracts_word_overrides_any_row(status: int, answer: Answer) -> None:
    verdict = classify_status(status, KeyStyle.HEADER, {str(status): answer})

    assert verdict.outcome.value == answer.value


def test_an_override_that_says_the_same_keeps_the_class() -> None:
    verdict = classify_status(401, KeyStyle.NONE, {"401": Answer.REJECTED})

    assert verdict.error_class is ErrorClass.PERMISSION


BEFORE = {
    WireFault.REFUSED,
    WireFault.UNRESOLVED,
    WireFault.UNREACHABLE,
    WireFault.CONNECT_TIMEOUT,
    WireFault.TLS,
}


@pytest.mark.parametrize("fault", list(WireFault))
def test_only_a_fault_before_the_send_is_surely_not_executed(fault: WireFault) -> None:
    outcome = classify_fault(fault).outcome

    assert (outcome is AttemptOutcome.NOT_EXECUTED) == (fault in BEFORE)
    assert outcome in (AttemptOutcome.NOT_EXECUTED, AttemptOutcome.UNKNOWN)


NOW = 1_445_412_480_000  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("0", 0),
        ("7", 7_000),
        (" 120 ", 120_000),
        ("999999999999999999999999", RETRY_AFTER_MS_MAX),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30_000),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),
        ("Wed, 21 Oct 2015 07:28:30", 30_000),
        ("Wed, 21 Oct 2099 07:28:30 GMT", RETRY_AFTER_MS_MAX),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date_and_bounded(
    value: str | None, expected: int | None
) -> None:
    assert retry_after_ms(value, NOW) == expected
