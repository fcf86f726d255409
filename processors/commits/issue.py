"""Turn planned items into intents: the outbox's only source, under one pinned key each."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.state import Commit, Item, ItemState
from processors.commits.transitions import ItemEvent, follow
from processors.step import Emit
from tallystick.keys import policy_hash
from tallystick.records import Intent, PlanItem
from tallystick.topics import Topic


def issue_due(commit: Commit, at_ms: int) -> tuple[Commit, tuple[Emit, ...]]:
    """Send out every item that may leave now; past the cut-off none does any more."""
    emits: list[Emit] = []
    items: list[Item] = []
    for index, (planned, item) in enumerate(commit.pairs()):
        if not _leaves(item, at_ms):
            items.append(item)
        elif not may_leave(commit, index, at_ms):
            items.append(_kept_back(item, at_ms >= commit.head.cutoff_at_ms))
        else:
            sent = replace(
                item,
                state=follow(item.state, ItemEvent.INTEND),
                attempt=item.attempt + 1,
                tries=item.tries + 1,
                due_ms=0,
            )
            items.append(sent)
            emits.append(_intent(commit, index, planned, sent))
    if tuple(items) == commit.head.items:
        return commit, ()
    commit = commit.with_head(items=tuple(items))
    # What was read before a write says nothing about it: reading begins anew.
    return (commit.with_head(read_try=0, read_due_ms=0) if emits else commit), tuple(emits)


def _leaves(item: Item, at_ms: int) -> bool:
    if item.state is ItemState.BACKOFF:
        return item.due_ms <= at_ms
    return item.state is ItemState.PLANNED


def may_leave(commit: Commit, index: int, at_ms: int) -> bool:
    """Whether time and attempts are left for one more dispatch of this item."""
    item = commit.head.items[index]
    return at_ms < commit.head.cutoff_at_ms and item.tries < commit.policy(index).attempts_max


def _kept_back(item: Item, late: bool) -> Item:
    """Neither time nor attempts are left: an item in doubt stays unknown, any other is missing."""
    event = ItemEvent.DOUBT_HOLD if item.doubtful else ItemEvent.GIVE_UP
    code = item.code or ("deadline_passed" if late else "attempts_exhausted")
    return replace(item, state=follow(item.state, event), due_ms=0, code=code)


def _intent(commit: Commit, index: int, planned: PlanItem, item: Item) -> Emit:
    plan = commit.plan
    intent = Intent(
        intent_id=item.intent_id,
        commit_key=plan.commit_key,
        plan_hash=plan.plan_hash,
        contract_name=plan.contract.name,
        contract_hash=plan.contract.hash,
        policy_hash=policy_hash(commit.policy(index)),
        module=plan.module,
        tool=planned.tool,
        identity=planned.identity,
        payload=planned.payload,
        round=commit.head.round,
        attempt=item.attempt,
        expires_at_ms=commit.head.cutoff_at_ms,
    )
    return Emit(Topic.INTENTS, plan.commit_key, intent)
