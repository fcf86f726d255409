"""Keys and hashes: who counts as the same call, item, plan and intent.

Each is SHA-256 in lower-case hex over canonical JSON whose first part names the rule that made
it, so a later rule can never meet an older one's keys. `docs/keys.md` writes every rule out,
and `tests/vectors` holds bytes for clients in other languages. No clock, no randomness.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tallystick.canonical import digest
from tallystick.errors import CallerError, PlanError
from tallystick.records.plans import ContractRef, PlanItem, ToolPolicy

CALL_KEY_RULE = "call/1"
"""Names the rule of `call_key`. It goes into the key: a changed rule cannot merge with its past."""

PLAN_HASH_RULE = "plan/1"
"""Names the rule of `plan_hash`, for the same reason."""

INTENT_ID_RULE = "intent/1"
"""Names the rule of `intent_id`. Targets keep these ids as idempotency keys for ever."""

EVIDENCE_HASH_RULE = "evidence/1"
"""Names the rule of `evidence_hash`."""

IDENTITY_BYTES_MAX = 512
"""Longest item identity in UTF-8. Lower: composed business keys are refused. Higher: 2,000 of
them alone fill a plan, and they no longer fit a URL path."""


def call_key(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    ignored: Iterable[str] = (),
    run_scope: str | None = None,
) -> str:
    """The key under which equal calls of `tool` are one call.

    `defaults` (from the tool's schema) are filled in first, so f(x) and f(x, y=default) agree;
    an explicit null is not an absent argument. `ignored` names the arguments in which the model
    itself sends an idempotency key. With a `run_scope`, equal calls of two runs stay two.
    Raises CanonicalError for arguments that JSON cannot hold, CallerError for an empty tool name.
    """
    if not tool:
        raise CallerError(
            "tool name is empty", where="call_key", fix="name the tool that is called"
        )
    left_out = frozenset(ignored)
    filled = {**(defaults or {}), **arguments}
    told = {name: value for name, value in filled.items() if name not in left_out}
    parts: list[Any] = [CALL_KEY_RULE, tool, told]
    if run_scope is not None:
        parts.append(run_scope)
    return digest(parts)


def item_identity(identity: Any, *, where: str = "identity") -> str:
    """Return `identity` unchanged if it can name a planned item, else raise PlanError.

    Identities are compared byte by byte: no trimming, no case folding, no Unicode normalization.
    """
    fault = identity_fault(identity)
    if fault:
        raise PlanError(
            f"item identity {fault}",
            where=where,
            fix="use the business key that the target itself shows, such as its case number",
        )
    return str(identity)


def identity_fault(identity: Any) -> str:
    """What is wrong with an item identity, as the end of a sentence; empty if nothing is."""
    if not isinstance(identity, str):
        return f"is {type(identity).__name__}, not text"
    if not identity:
        return "is empty"
    try:
        size = len(identity.encode())
    except UnicodeEncodeError:
        return "holds a lone surrogate"
    if size > IDENTITY_BYTES_MAX:
        return f"has {size} bytes, more than {IDENTITY_BYTES_MAX}"
    return ""


def payload_hash(payload: str) -> str:
    """SHA-256 over a payload's canonical JSON text (`canonical_text` makes it)."""
    return hashlib.sha256(payload.encode()).hexdigest()


def policy_hash(policy: ToolPolicy) -> str:
    """SHA-256 over a tool policy as canonical JSON: the object of its fields, nulls included."""
    return digest(msgspec.to_builtins(policy))


def evidence_hash(evidence: Any | None, evidence_ref: str | None = None) -> str:
    """The hash of what a plan rests on: its content where given, else the reference to it."""
    if evidence is not None:
        return digest([EVIDENCE_HASH_RULE, "content", evidence])
    if evidence_ref is not None:
        return digest([EVIDENCE_HASH_RULE, "reference", evidence_ref])
    return digest([EVIDENCE_HASH_RULE, "none"])


def plan_hash(
    *, evidence_hash: str, contract: ContractRef, module: str, items: Iterable[PlanItem]
) -> str:
    """The hash that ties plan, intents, read-backs and receipt together.

    It covers the evidence, the contract, the module and every item in its order; the commit key
    is no part of it, because the key names the work and the hash its content.
    """
    return digest(
        {
            "rule": PLAN_HASH_RULE,
            "evidence_hash": evidence_hash,
            "contract": {
                "name": contract.name,
                "version": contract.version,
                "hash": contract.hash,
            },
            "module": module,
            "items": [[item.tool, item.identity, item.payload_hash] for item in items],
        }
    )


def intent_id(commit_key: str, plan_hash: str, tool: str, identity: str) -> str:
    """The idempotency key of one planned item, the same in every attempt.

    The commit key is in it: two pieces of work with equal content (two reminders) are meant
    twice, and a target must not take the second for a repeat of the first.
    """
    return digest([INTENT_ID_RULE, commit_key, plan_hash, tool, identity])
