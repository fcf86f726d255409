"""Claim before the call: `attempt started` and the intent's offset in one transaction.

A dispatcher that dies after its claim can lose an outcome, never repeat a call: the intent is
not delivered again, and only the ledger issues another attempt (DESIGN.md, step 3).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tallystick.protocol import SEND_WINDOW_MS
from tallystick.records import (
    Attempt,
    AttemptOutcome,
    AttemptPhase,
    ErrorClass,
    Intent,
)


def boot_ms() -> int:
    """Milliseconds that also count while the machine sleeps, where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1_000_000


@dataclass(frozen=True, slots=True)
class Claim:
    """An intent that is ours to call: when we claimed it (boot clock) and when the log says so."""

    intent: Intent
    claimed_boot_ms: int
    partition: int
    logged_at_ms: int


def refusal(claim: Claim, now_boot_ms: int) -> str:
    """Why this claim must not be followed by a call any more, or an empty string.

    The ledger decides by the claim's log time whether the intent had expired, so we decide by
    the same number; and it reckons with no call later than the send window after the claim, so a
    process that was stopped in between must not wake up and call.
    """
    if claim.logged_at_ms > claim.intent.expires_at_ms:
        return "expired"
    if now_boot_ms - claim.claimed_boot_ms > SEND_WINDOW_MS:
        return "send_window_passed"
    return ""


def send_window_left_ms(claim: Claim, now_boot_ms: int) -> int:
    """How long a call may still begin, in milliseconds; never negative."""
    return max(claim.claimed_boot_ms + SEND_WINDOW_MS - now_boot_ms, 0)


def started(intent: Intent, dispatcher: str) -> Attempt:
    """The claim's record."""
    return _attempt(intent, dispatcher, AttemptPhase.STARTED, AttemptOutcome.PENDING)


def not_called(intent: Intent, dispatcher: str, code: str, detail: str) -> Attempt:
    """The outcome of a claim that was not followed by a call."""
    return _attempt(
        intent,
        dispatcher,
        AttemptPhase.SETTLED,
        AttemptOutcome.NOT_EXECUTED,
        error_class=ErrorClass.SETUP,
        code=code,
        detail=detail,
    )


def settled(
    intent: Intent,
    dispatcher: str,
    outcome: AttemptOutcome,
    *,
    error_class: ErrorClass,
    code: str,
    detail: str,
    retry_after_ms: int | None,
    target_ref: str | None,
    elapsed_ms: int,
) -> Attempt:
    """The outcome of a call."""
    return _attempt(
        intent,
        dispatcher,
        AttemptPhase.SETTLED,
        outcome,
        error_class=error_class,
        code=code,
        detail=detail,
        retry_after_ms=retry_after_ms,
        target_ref=target_ref,
        elapsed_ms=elapsed_ms,
    )


def _attempt(
    intent: Intent,
    dispatcher: str,
    phase: AttemptPhase,
    outcome: AttemptOutcome,
    *,
    error_class: ErrorClass = ErrorClass.NONE,
    code: str = "",
    detail: str = "",
    retry_after_ms: int | None = None,
    target_ref: str | None = None,
    elapsed_ms: int = 0,
) -> Attempt:
    return Attempt(
        commit_key=intent.commit_key,
        plan_hash=intent.plan_hash,
        intent_id=intent.intent_id,
        attempt=intent.attempt,
        phase=phase,
        outcome=outcome,
        error_class=error_class,
        code=code,
        detail=detail,
        retry_after_ms=retry_after_ms,
        target_ref=target_ref,
        dispatcher=dispatcher,
        elapsed_ms=elapsed_ms,
    )
