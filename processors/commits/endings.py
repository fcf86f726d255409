"""End a round: a receipt where every item is verified, else a partial record that hides nothing."""

from __future__ import annotations

from collections import Counter

from processors.commits.state import Commit, Item, ItemState, Phase
from processors.commits.timing import can_read
from processors.step import Emit
from tallystick.canonical import digest
from tallystick.errors import invariant
from tallystick.records import (
    EvidenceKind,
    ItemStatus,
    PartialItem,
    PartialReason,
    PartialSuccess,
    PlanItem,
    Receipt,
    ReceiptItem,
    UnplannedItem,
)
from tallystick.topics import Topic

_STATUS = {
    ItemState.UNKNOWN: ItemStatus.UNKNOWN,
    # Acknowledged and never seen: a claim, not a fact.
    ItemState.WRITTEN: ItemStatus.UNKNOWN,
    ItemState.REJECTED: ItemStatus.REJECTED,
    ItemState.MISSING: ItemStatus.MISSING,
    ItemState.DIFFERENT: ItemStatus.DIFFERENT,
    ItemState.DUPLICATE: ItemStatus.DUPLICATE,
}


def status_of(item: Item) -> ItemStatus:
    """An ended item's standing in the words of receipts and partial records."""
    if item.state is ItemState.VERIFIED:
        return ItemStatus.EXISTED_BEFORE if item.existed else ItemStatus.APPLIED
    status = _STATUS.get(item.state)
    invariant(status is not None, f"no item is {item.state} when its round ends")
    return status or ItemStatus.UNKNOWN


def end(commit: Commit, at_ms: int) -> tuple[Commit, tuple[Emit, ...]]:
    """Close the round with its one ending; nothing is rounded up."""
    ended = commit.with_head(open_read="", read_due_ms=0, ended_at_ms=at_ms)
    if all(item.state is ItemState.VERIFIED for item in commit.head.items):
        receipt = _receipt(ended, at_ms)
        closed = Commit(
            plan=ended.plan,
            plan_row=ended.plan_row,
            head=ended.with_head(phase=Phase.RECEIPTED).head,
            receipt=receipt,
        )
        return closed, (Emit(Topic.RECEIPTS, commit.plan.commit_key, receipt),)
    partial = _partial(ended, at_ms)
    return ended.with_head(phase=Phase.PARTIAL), (
        Emit(Topic.PARTIALS, commit.plan.commit_key, partial),
    )


def _receipt(commit: Commit, at_ms: int) -> Receipt:
    plan, head = commit.plan, commit.head
    items = tuple(_receipt_item(planned, item) for planned, item in commit.pairs())
    return Receipt(
        receipt_id=digest(["receipt", plan.commit_key, plan.plan_hash]),
        commit_key=plan.commit_key,
        plan_hash=plan.plan_hash,
        contract_name=plan.contract.name,
        contract_version=plan.contract.version,
        contract_hash=plan.contract.hash,
        module=plan.module,
        session_id=head.session_id,
        run_id=head.run_id,
        round=head.round,
        items=items,
        unplanned=_unplanned(commit),
        planned_count=len(plan.items),
        verified_count=len(items),
        frozen_at_ms=head.frozen_at_ms,
        issued_at_ms=at_ms,
    )


def _receipt_item(planned: PlanItem, item: Item) -> ReceiptItem:
    invariant(item.evidence is not EvidenceKind.UNKNOWN, "a receipt item names its evidence")
    return ReceiptItem(
        tool=planned.tool,
        identity=planned.identity,
        payload_hash=planned.payload_hash,
        intent_id=item.intent_id,
        status=status_of(item),
        attempts=item.attempt,
        evidence=item.evidence,
        evidence_id=item.evidence_id,
        found_digest=item.found_digest,
        target_refs=item.target_refs,
    )


def _partial(commit: Commit, at_ms: int) -> PartialSuccess:
    plan, head = commit.plan, commit.head
    items = tuple(
        _partial_item(commit, index, planned, item)
        for index, (planned, item) in enumerate(commit.pairs())
    )
    counts = Counter(item.status for item in items)
    verified = counts[ItemStatus.APPLIED] + counts[ItemStatus.EXISTED_BEFORE]
    in_world = verified + counts[ItemStatus.DIFFERENT] + counts[ItemStatus.DUPLICATE]
    return PartialSuccess(
        partial_id=digest(["partial", plan.commit_key, plan.plan_hash, head.round]),
        commit_key=plan.commit_key,
        plan_hash=plan.plan_hash,
        contract_name=plan.contract.name,
        contract_version=plan.contract.version,
        contract_hash=plan.contract.hash,
        module=plan.module,
        session_id=head.session_id,
        run_id=head.run_id,
        round=head.round,
        reason=_reason(commit, counts, at_ms),
        items=items,
        unplanned=_unplanned(commit),
        planned_count=len(items),
        verified_count=verified,
        written_count=in_world,
        missing_count=counts[ItemStatus.MISSING],
        different_count=counts[ItemStatus.DIFFERENT],
        duplicate_count=counts[ItemStatus.DUPLICATE],
        unknown_count=counts[ItemStatus.UNKNOWN],
        rejected_count=counts[ItemStatus.REJECTED],
        frozen_at_ms=head.frozen_at_ms,
        issued_at_ms=at_ms,
    )


def _partial_item(commit: Commit, index: int, planned: PlanItem, item: Item) -> PartialItem:
    status = status_of(item)
    in_world = status not in (ItemStatus.MISSING, ItemStatus.REJECTED)
    code = item.code
    if item.state is ItemState.WRITTEN and not code:
        code = "not_read" if can_read(commit.policy(index)) else "cannot_be_read"
    return PartialItem(
        tool=planned.tool,
        identity=planned.identity,
        payload_hash=planned.payload_hash,
        intent_id=item.intent_id,
        status=status,
        attempts=item.attempt,
        code=code,
        detail=item.detail,
        differing=item.differing,
        target_refs=item.target_refs,
        compensation=commit.policy(index).compensation if in_world else None,
    )


def _unplanned(commit: Commit) -> tuple[UnplannedItem, ...]:
    return tuple(
        UnplannedItem(identity=seen.identity, target_ref=seen.target_ref)
        for seen in commit.head.unplanned
    )


def _reason(commit: Commit, counts: Counter[ItemStatus], at_ms: int) -> PartialReason:
    """The first that holds, in the order in which a person has to act."""
    for status, reason in (
        (ItemStatus.UNKNOWN, PartialReason.EFFECTS_UNKNOWN),
        (ItemStatus.DUPLICATE, PartialReason.ITEMS_DUPLICATED),
        (ItemStatus.DIFFERENT, PartialReason.CONTENT_DIFFERS),
        (ItemStatus.REJECTED, PartialReason.ITEMS_REJECTED),
    ):
        if counts[status]:
            return reason
    if any(item.code == "acknowledged_not_found" for item in commit.head.items):
        return PartialReason.NOT_FOUND
    late = at_ms >= commit.head.cutoff_at_ms
    return PartialReason.DEADLINE_PASSED if late else PartialReason.ATTEMPTS_EXHAUSTED
