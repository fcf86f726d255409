"""What was called: intents, attempts at them, the epochs they move, and human resolutions."""

from __future__ import annotations

from enum import StrEnum

from tallystick.records.base import Record


class Intent(Record):
    """One planned item on its way out; `intent_id` is the idempotency key of every attempt.

    A claim whose log time lies after `expires_at_ms` must not be dispatched: the ledger counts
    it as not executed, so both sides decide alike without comparing clocks.
    """

    intent_id: str
    commit_key: str
    plan_hash: str
    contract_name: str
    contract_hash: str
    policy_hash: str
    module: str
    tool: str
    identity: str
    payload: str
    round: int
    attempt: int
    expires_at_ms: int


class AttemptPhase(StrEnum):
    """STARTED is the claim, written before the call; SETTLED carries what came back."""

    UNKNOWN = "unknown"
    STARTED = "started"
    SETTLED = "settled"


class AttemptOutcome(StrEnum):
    """What is known of the call; PENDING stands in a claim, UNKNOWN is never retried blindly."""

    UNKNOWN = "unknown"
    PENDING = "pending"
    NOT_EXECUTED = "not_executed"
    REJECTED = "rejected"
    APPLIED = "applied"
    EXISTS = "exists"
    EXISTS_DIFFERENT = "exists_different"


class ErrorClass(StrEnum):
    """Why a call did not succeed, by the layer that said so."""

    UNKNOWN = "unknown"
    NONE = "none"
    TRANSIENT = "transient"
    PERMISSION = "permission"
    SCHEMA = "schema"
    BUSINESS = "business"
    SETUP = "setup"


class Attempt(Record):
    """A claim on an intent, or its outcome; (`intent_id`, `attempt`, `phase`) names it."""

    commit_key: str
    plan_hash: str
    intent_id: str
    attempt: int
    phase: AttemptPhase
    outcome: AttemptOutcome
    error_class: ErrorClass
    code: str
    detail: str
    retry_after_ms: int | None
    target_ref: str | None
    dispatcher: str
    elapsed_ms: int


class ResolutionVerdict(StrEnum):
    """What a person or the target's owner established about an unknown effect."""

    UNKNOWN = "unknown"
    APPLIED = "applied"
    ABSENT = "absent"


class Resolution(Record):
    """Evidence from outside that settles an effect which no read-back can see."""

    resolution_id: str
    commit_key: str
    intent_id: str
    verdict: ResolutionVerdict
    evidence: str
    resolved_by: str


class MutationPhase(StrEnum):
    """OPENED: something is in flight or unknown in the scope; SETTLED: nothing is any more."""

    UNKNOWN = "unknown"
    OPENED = "opened"
    SETTLED = "settled"


class Mutation(Record):
    """A commit begins or ceases to disturb `scope`; each one moves the scope's epoch."""

    scope: str
    commit_key: str
    plan_hash: str
    phase: MutationPhase
    unsettled: int
    at_ms: int


class EffectStatus(StrEnum):
    """What the owning session learns about one item."""

    UNKNOWN = "unknown"
    DISPATCHED = "dispatched"
    ACKNOWLEDGED = "acknowledged"
    NOT_EXECUTED = "not_executed"
    REJECTED = "rejected"
    APPLIED = "applied"
    EXISTED_BEFORE = "existed_before"
    MISSING = "missing"
    DIFFERENT = "different"
    DUPLICATE = "duplicate"


class Effect(Record):
    """One item's change of status, addressed to the session that asked for the commit."""

    session_id: str
    run_id: str | None
    commit_key: str
    plan_hash: str
    intent_id: str
    tool: str
    identity: str
    attempt: int
    status: EffectStatus
    at_ms: int
