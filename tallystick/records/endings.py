"""How a commit ends: a receipt where plan and world agree, else a partial record."""

from __future__ import annotations

from enum import StrEnum

from tallystick.records.base import Record


class ItemStatus(StrEnum):
    """Where one planned item stands against the world; only the first two are verified."""

    UNKNOWN = "unknown"
    APPLIED = "applied"
    EXISTED_BEFORE = "existed_before"
    MISSING = "missing"
    DIFFERENT = "different"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


VERIFIED = frozenset({ItemStatus.APPLIED, ItemStatus.EXISTED_BEFORE})


class EvidenceKind(StrEnum):
    """What a receipt item rests on: a fresh read, the target's own receipt, or a person."""

    UNKNOWN = "unknown"
    READBACK = "readback"
    ACKNOWLEDGEMENT = "acknowledgement"
    RESOLUTION = "resolution"


class UnplannedItem(Record):
    """Something found beside the plan."""

    identity: str
    target_ref: str


class ReceiptItem(Record):
    """One verified item and the evidence for it."""

    tool: str
    identity: str
    payload_hash: str
    intent_id: str
    status: ItemStatus
    attempts: int
    evidence: EvidenceKind
    evidence_id: str
    found_digest: str
    target_refs: tuple[str, ...]


class Receipt(Record):
    """Promise and world agree, item by item; there is one for a plan, ever."""

    receipt_id: str
    commit_key: str
    plan_hash: str
    contract_name: str
    contract_version: str
    contract_hash: str
    module: str
    session_id: str | None
    run_id: str | None
    round: int
    items: tuple[ReceiptItem, ...]
    unplanned: tuple[UnplannedItem, ...]
    planned_count: int
    verified_count: int
    frozen_at_ms: int
    issued_at_ms: int


class PartialReason(StrEnum):
    """Why there is no receipt; where several hold, the first in this order is named."""

    UNKNOWN = "unknown"
    EFFECTS_UNKNOWN = "effects_unknown"
    ITEMS_DUPLICATED = "items_duplicated"
    CONTENT_DIFFERS = "content_differs"
    ITEMS_REJECTED = "items_rejected"
    NOT_FOUND = "not_found"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    DEADLINE_PASSED = "deadline_passed"


class PartialItem(Record):
    """One item of a plan that has no receipt, verified or not."""

    tool: str
    identity: str
    payload_hash: str
    intent_id: str
    status: ItemStatus
    attempts: int
    code: str
    detail: str
    differing: tuple[str, ...]
    target_refs: tuple[str, ...]
    compensation: str | None


class PartialSuccess(Record):
    """The third state: what was verified, what was written, what is missing or different.

    `written_count` counts the items that the world holds in any form, right or wrong.
    A later commit of the same plan takes up the missing items alone.
    """

    partial_id: str
    commit_key: str
    plan_hash: str
    contract_name: str
    contract_version: str
    contract_hash: str
    module: str
    session_id: str | None
    run_id: str | None
    round: int
    reason: PartialReason
    items: tuple[PartialItem, ...]
    unplanned: tuple[UnplannedItem, ...]
    planned_count: int
    verified_count: int
    written_count: int
    missing_count: int
    different_count: int
    duplicate_count: int
    unknown_count: int
    rejected_count: int
    frozen_at_ms: int
    issued_at_ms: int
