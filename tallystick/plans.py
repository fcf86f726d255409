"""Build a plan from structured input, and check one that somebody else built.

Prose and transcripts never become a plan (DESIGN.md, "Freeze"): the input is a document of
identities and payloads. `build_plan` serves the caller and raises; `check_plan` serves the
ledger, which distrusts callers, and only names the broken rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from tallystick.canonical import canonical_text, parse_json
from tallystick.errors import CanonicalError, PlanError
from tallystick.keys import evidence_hash, identity_fault, item_identity, payload_hash, plan_hash
from tallystick.plan_document import DraftItem, PlanDocument, parse_plan
from tallystick.plan_limits import (
    ATTEMPTS_MAX,
    DURATION_MS_MAX,
    ITEM_OVERHEAD_BYTES,
    ITEMS_MAX,
    NAME_BYTES_MAX,
    PLAN_BYTES_MAX,
    REF_BYTES_MAX,
    text_fault,
)
from tallystick.records.plans import ContractRef, Plan, PlanItem, ToolPolicy

__all__ = [
    "ITEMS_MAX",
    "PLAN_BYTES_MAX",
    "DraftItem",
    "PlanDocument",
    "PlanFault",
    "build_plan",
    "check_plan",
    "parse_plan",
    "plan_bytes",
    "plan_from",
]

_HEX = re.compile(r"[0-9a-f]{64}")


class PlanFault(StrEnum):
    """The rules that `check_plan` holds a plan to; of several broken ones the first is named."""

    COMMIT_KEY_MALFORMED = "commit_key_malformed"
    MODULE_MALFORMED = "module_malformed"
    CONTRACT_MALFORMED = "contract_malformed"
    EVIDENCE_MALFORMED = "evidence_malformed"
    ITEMS_EMPTY = "items_empty"
    ITEMS_TOO_MANY = "items_too_many"
    PLAN_TOO_LARGE = "plan_too_large"
    POLICY_REPEATED = "policy_repeated"
    POLICY_MISSING = "policy_missing"
    POLICY_UNUSED = "policy_unused"
    POLICY_OUT_OF_RANGE = "policy_out_of_range"
    IDENTITY_MALFORMED = "identity_malformed"
    IDENTITY_REPEATED = "identity_repeated"
    PAYLOAD_NOT_CANONICAL = "payload_not_canonical"
    PAYLOAD_HASH_DIFFERS = "payload_hash_differs"
    PLAN_HASH_DIFFERS = "plan_hash_differs"


def build_plan(
    *,
    commit_key: str,
    items: Iterable[DraftItem | Mapping[str, Any]],
    contract: ContractRef,
    policies: Mapping[str, ToolPolicy],
    module: str,
    evidence: Any | None = None,
    evidence_ref: str | None = None,
    tool: str | None = None,
) -> Plan:
    """A plan ready to be committed: payloads canonical, every hash computed.

    `policies` are the contract's tools by name. An item without a tool takes `tool`, or the
    contract's only one. Raises PlanError, naming the place, for whatever the ledger would refuse.
    """
    drafts = [_draft(item, f"$.items[{i}]") for i, item in enumerate(items)]
    _check_texts(commit_key=commit_key, module=module, evidence_ref=evidence_ref)
    _check_count(len(drafts))
    default = tool if tool is not None else _only(policies)
    planned = tuple(
        _item(draft, f"$.items[{i}]", default, policies, contract) for i, draft in enumerate(drafts)
    )
    _check_unique(planned)
    try:
        evidence_digest = evidence_hash(evidence, evidence_ref)
    except CanonicalError as error:
        place = f"$.evidence{error.where.removeprefix('$[2]')}"
        raise PlanError(error.message, where=place, fix=error.fix) from None
    used = sorted({item.tool for item in planned})
    plan = Plan(
        commit_key=commit_key,
        plan_hash=plan_hash(
            evidence_hash=evidence_digest, contract=contract, module=module, items=planned
        ),
        evidence_hash=evidence_digest,
        evidence_ref=evidence_ref,
        contract=contract,
        module=module,
        items=planned,
        policies=tuple(policies[name] for name in used),
    )
    _check_built(plan)
    return plan


def plan_from(
    document: PlanDocument, *, contract: ContractRef, policies: Mapping[str, ToolPolicy]
) -> Plan:
    """The plan that a plan file asks for, under a contract; errors as in `build_plan`."""
    try:
        return build_plan(
            commit_key=document.commit_key,
            items=document.items,
            contract=contract,
            policies=policies,
            module=document.module,
            evidence=document.evidence,
            evidence_ref=document.evidence_ref,
            tool=document.tool,
        )
    except PlanError as error:
        place = f"{document.source}: {error.where}" if document.source else error.where
        raise PlanError(error.message, where=place, fix=error.fix) from None


def plan_bytes(plan: Plan) -> int:
    """About how many bytes the plan takes in a record; never less than it really takes."""
    texts = [plan.commit_key, plan.module, plan.evidence_ref or ""]
    texts += (plan.contract.name, plan.contract.version)
    for item in plan.items:
        texts += (item.tool, item.identity, item.payload)
    for policy in plan.policies:
        texts += (policy.tool, policy.scope, policy.compensation or "")
    rows = len(plan.items) + 8 * len(plan.policies) + 8
    # A hostile plan may hold what UTF-8 cannot: it is measured all the same.
    size = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    return size + rows * ITEM_OVERHEAD_BYTES


def check_plan(plan: Plan) -> str:
    """The name of the first rule (a PlanFault) that the plan breaks, or an empty string.

    Recomputes every hash. Pure, and it never raises: a hostile plan is an answer, not an error.
    """
    return (
        _head_fault(plan)
        or _policies_fault(plan)
        or _items_fault(plan.items)
        or _hash_fault(plan)
        or ""
    )


def _head_fault(plan: Plan) -> PlanFault | None:
    contract = plan.contract
    named = not text_fault(contract.name, NAME_BYTES_MAX)
    versioned = not text_fault(contract.version, NAME_BYTES_MAX)
    ref = plan.evidence_ref
    if text_fault(plan.commit_key, NAME_BYTES_MAX):
        return PlanFault.COMMIT_KEY_MALFORMED
    if text_fault(plan.module, NAME_BYTES_MAX):
        return PlanFault.MODULE_MALFORMED
    if not (named and versioned and _HEX.fullmatch(contract.hash)):
        return PlanFault.CONTRACT_MALFORMED
    if not _HEX.fullmatch(plan.evidence_hash) or (
        ref is not None and text_fault(ref, REF_BYTES_MAX)
    ):
        return PlanFault.EVIDENCE_MALFORMED
    if not plan.items:
        return PlanFault.ITEMS_EMPTY
    if len(plan.items) > ITEMS_MAX:
        return PlanFault.ITEMS_TOO_MANY
    return PlanFault.PLAN_TOO_LARGE if plan_bytes(plan) > PLAN_BYTES_MAX else None


def _policies_fault(plan: Plan) -> PlanFault | None:
    known = {policy.tool for policy in plan.policies}
    used = {item.tool for item in plan.items}
    if len(known) < len(plan.policies):
        return PlanFault.POLICY_REPEATED
    if used - known:
        return PlanFault.POLICY_MISSING
    if known - used:
        return PlanFault.POLICY_UNUSED
    return next((PlanFault.POLICY_OUT_OF_RANGE for p in plan.policies if not _in_range(p)), None)


def _in_range(policy: ToolPolicy) -> bool:
    durations_ms = (
        policy.visibility_lag_ms,
        policy.in_flight_ms or 0,
        policy.call_timeout_ms,
        policy.backoff_ms,
        policy.backoff_ms_max,
    )
    return (
        not text_fault(policy.tool, NAME_BYTES_MAX)
        and not text_fault(policy.scope, NAME_BYTES_MAX)
        and min(durations_ms) >= 0
        and max(durations_ms) <= DURATION_MS_MAX
        and policy.call_timeout_ms >= 1
        and policy.backoff_ms_max >= policy.backoff_ms
        and 1 <= policy.attempts_max <= ATTEMPTS_MAX
    )


def _items_fault(items: Sequence[PlanItem]) -> PlanFault | None:
    if any(identity_fault(item.identity) for item in items):
        return PlanFault.IDENTITY_MALFORMED
    if len({(item.tool, item.identity) for item in items}) < len(items):
        return PlanFault.IDENTITY_REPEATED
    if not all(_is_canonical_object(item.payload) for item in items):
        return PlanFault.PAYLOAD_NOT_CANONICAL
    if any(payload_hash(item.payload) != item.payload_hash for item in items):
        return PlanFault.PAYLOAD_HASH_DIFFERS
    return None


def _is_canonical_object(payload: str) -> bool:
    try:
        value = parse_json(payload)
        return isinstance(value, dict) and canonical_text(value) == payload
    except CanonicalError:
        return False


def _hash_fault(plan: Plan) -> PlanFault | None:
    expected = plan_hash(
        evidence_hash=plan.evidence_hash,
        contract=plan.contract,
        module=plan.module,
        items=plan.items,
    )
    return None if plan.plan_hash == expected else PlanFault.PLAN_HASH_DIFFERS


def _draft(item: DraftItem | Mapping[str, Any], where: str) -> DraftItem:
    return item if isinstance(item, DraftItem) else DraftItem.read(item, where)


def _check_texts(*, commit_key: str, module: str, evidence_ref: str | None) -> None:
    given = [("commit_key", commit_key, NAME_BYTES_MAX), ("module", module, NAME_BYTES_MAX)]
    if evidence_ref is not None:
        given.append(("evidence_ref", evidence_ref, REF_BYTES_MAX))
    for name, text, limit in given:
        fault = text_fault(text, limit)
        if fault:
            raise PlanError(f"{name} {fault}", where=f"$.{name}", fix="give a short, stable name")


def _check_count(count: int) -> None:
    if count == 0:
        raise PlanError("plan has no items", where="$.items", fix="plan at least one item")
    if count > ITEMS_MAX:
        raise PlanError(
            f"plan has {count} items, more than {ITEMS_MAX}",
            where="$.items",
            fix="split it into several plans, each with its own commit_key",
        )


def _only(policies: Mapping[str, ToolPolicy]) -> str | None:
    return next(iter(policies)) if len(policies) == 1 else None


def _item(
    draft: DraftItem,
    where: str,
    default: str | None,
    policies: Mapping[str, ToolPolicy],
    contract: ContractRef,
) -> PlanItem:
    tool = draft.tool if draft.tool is not None else default
    tools = ", ".join(sorted(policies)) or "none"
    if tool is None:
        raise PlanError("item names no tool", where=where, fix=f"name one of: {tools}")
    if tool not in policies:
        raise PlanError(
            f"contract {contract.name!r} has no tool {tool!r}",
            where=f"{where}.tool",
            fix=f"its tools: {tools}",
        )
    identity = item_identity(draft.identity, where=f"{where}.identity")
    if not isinstance(draft.payload, Mapping):
        kind = type(draft.payload).__name__
        raise PlanError(
            f"payload is {kind}, not an object", where=f"{where}.payload", fix="send named fields"
        )
    try:
        payload = canonical_text(dict(draft.payload))
    except CanonicalError as error:
        place = f"{where}.payload{error.where[1:]}"
        raise PlanError(error.message, where=place, fix=error.fix) from None
    return PlanItem(
        tool=tool, identity=identity, payload=payload, payload_hash=payload_hash(payload)
    )


def _check_unique(items: Sequence[PlanItem]) -> None:
    first: dict[tuple[str, str], int] = {}
    for index, item in enumerate(items):
        earlier = first.setdefault((item.tool, item.identity), index)
        if earlier != index:
            raise PlanError(
                f"item {item.identity!r} of tool {item.tool!r} is planned twice, "
                f"first as $.items[{earlier}]",
                where=f"$.items[{index}].identity",
                fix="give each item its own identity; two equal writes that are both meant differ"
                " in identity",
            )


def _check_built(plan: Plan) -> None:
    """Refuse here what the ledger would refuse, where the caller can still see the file."""
    fault = check_plan(plan)
    if fault == PlanFault.PLAN_TOO_LARGE:
        raise PlanError(
            f"plan takes {plan_bytes(plan)} bytes, more than {PLAN_BYTES_MAX}",
            where="$.items",
            fix="split it, or put large content elsewhere and send a reference and a digest",
        )
    if fault:
        raise PlanError(
            f"the ledger would refuse this plan: {fault}",
            where="contract",
            fix="correct the contract that the plan is built under",
        )
