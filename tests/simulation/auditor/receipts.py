"""No receipt unless every planned item is in the target, once and as planned, at that time; or
the target (or a person) vouched for it where nothing can be read.

Copies that came after the look which the receipt names are not the receipt's fault.
"""

from __future__ import annotations

from tallystick.records import (
    EvidenceKind,
    KeyStyle,
    Plan,
    PlanAnswer,
    ReadbackKind,
    Receipt,
    ReceiptItem,
)
from tests.simulation.auditor.case import Case
from tests.simulation.history import Looked


def check(case: Case) -> list[str]:
    """Receipts that are not true."""
    plans = {a.plan.plan_hash: a.plan for _, _, a in case.of(PlanAnswer) if a.plan is not None}
    looks = case.looks()
    faults = []
    for at_ms, _, receipt in case.of(Receipt):
        plan = plans.get(receipt.plan_hash)
        if plan is None:
            faults.append(f"{receipt.commit_key}: a receipt for a plan that was never frozen")
            continue
        faults += _same_items(plan, receipt)
        contents = {(item.tool, item.identity): item.payload for item in plan.items}
        for item in receipt.items:
            told = _untrue(case, receipt, item, contents[item.tool, item.identity], at_ms, looks)
            if told:
                faults.append(f"{receipt.commit_key}/{item.identity}: {told}")
    return faults


def _same_items(plan: Plan, receipt: Receipt) -> list[str]:
    planned = [(item.tool, item.identity, item.payload_hash) for item in plan.items]
    named = [(item.tool, item.identity, item.payload_hash) for item in receipt.items]
    whole = planned == named and receipt.verified_count == receipt.planned_count == len(planned)
    return [] if whole else [f"{receipt.commit_key}: the receipt does not name every planned item"]


def _untrue(
    case: Case,
    receipt: Receipt,
    item: ReceiptItem,
    content: str,
    at_ms: int,
    looks: dict[str, Looked],
) -> str:
    if item.evidence is EvidenceKind.READBACK:
        look = looks.get(item.evidence_id)
        if look is None or look.request.commit_key != receipt.commit_key:
            return "names a read that was never answered"
        there = look.truth.get((item.tool, item.identity), ())
        # Where a look may lag, one copy can be seen while a second is not visible yet.
        policy = case.policy(item.tool)
        lagging = policy.readback is ReadbackKind.LAGGING
        before = case.holds(item.tool, item.identity, look.at_ms - policy.visibility_lag_ms)
        if there != (content,) and lagging and (content in before or set(there) == {content}):
            case.gaps["lag_hides_last_write"] += 1
        elif there != (content,):
            return f"read as planned, but {len(there)} copies were there: {there}"
        now = case.holds(item.tool, item.identity, at_ms)
        if now[:1] != (content,) and policy.key_style is KeyStyle.NATURAL:
            case.gaps["natural_overtaken"] += 1
            return ""
        lagged = lagging and content in now
        return "" if lagged or now[:1] == (content,) else f"holds {now} when its receipt is issued"
    if case.readable(item.tool):
        return f"rests on {item.evidence}, though it can be read"
    if item.evidence is EvidenceKind.ACKNOWLEDGEMENT:
        vouched = any(
            sent.intent_id == item.intent_id and sent.target_ref == item.evidence_id
            for sent in case.history.sent
        )
        return "" if vouched else "rests on an acknowledgement that the target never gave"
    said = any(s.intent_id == item.intent_id and s.applied for s in case.history.said)
    return "" if said else "rests on a word that nobody gave"
