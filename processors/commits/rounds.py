"""Begin rounds: the first at the freeze, later ones for a retry or for a fact that came late."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.state import Commit, Head, Item, ItemState, Phase, encode_plan
from processors.commits.timing import can_read, can_repeat, cutoff_ms
from processors.commits.transitions import ItemEvent, follow
from tallystick.keys import intent_id
from tallystick.records import Plan, PlanRequest, ToolPolicy

LATE_READ_MS = 30_000
"""How long a round that a late fact opened may read. Lower: a lagging target cannot confirm the
late write. Higher: the corrected record comes later when it cannot."""


def first_round(request: PlanRequest, at_ms: int) -> Commit:
    """A freshly frozen commit; tools that say so are read before the first write."""
    plan = request.plan
    policies = {policy.tool: policy for policy in plan.policies}
    items = tuple(
        Item(
            intent_id=intent_id(plan.commit_key, plan.plan_hash, item.tool, item.identity),
            state=first_state(policies[item.tool]),
        )
        for item in plan.items
    )
    return _begin(plan, request, items, 1, 0, at_ms)


def first_state(policy: ToolPolicy) -> ItemState:
    """Where an item starts that no earlier plan knows."""
    return ItemState.CHECKING if policy.read_first and can_read(policy) else ItemState.PLANNED


def superseding_round(
    old: Commit, request: PlanRequest, items: tuple[Item, ...], at_ms: int
) -> Commit:
    """The first round of a plan that replaces `old`; reads are numbered on, never again from 1."""
    return _begin(request.plan, request, items, old.head.round + 1, old.head.read_number, at_ms)


def retry_round(commit: Commit, request: PlanRequest, at_ms: int) -> Commit:
    """A caller asks again after a partial record: read first, then write only what is missing."""
    items = tuple(
        reopened(item, commit.policy(index)) for index, item in enumerate(commit.head.items)
    )
    return Commit(
        plan=commit.plan,
        plan_row=commit.plan_row,
        head=replace(
            _begin(
                commit.plan,
                request,
                items,
                commit.head.round + 1,
                commit.head.read_number,
                at_ms,
            ).head,
            frozen_at_ms=commit.head.frozen_at_ms,
        ),
    )


def late_round(commit: Commit, at_ms: int) -> Commit:
    """A fact arrived after the partial record: look again and correct it, but write nothing."""
    return commit.with_head(
        phase=Phase.WORKING,
        round=commit.head.round + 1,
        cutoff_at_ms=at_ms,
        answer_by_ms=at_ms + LATE_READ_MS,
        read_try=0,
        read_due_ms=0,
        open_read="",
        ended_at_ms=0,
    )


def reopened(item: Item, policy: ToolPolicy) -> Item:
    """How an item enters a new round."""
    fresh = replace(item, tries=0, barred=False, due_ms=0)
    if item.state is ItemState.VERIFIED:
        return item
    if can_read(policy):
        return replace(fresh, state=follow(item.state, ItemEvent.RECHECK), differing=())
    if item.state is ItemState.UNKNOWN and not can_repeat(policy):
        return fresh
    if item.state in (ItemState.UNKNOWN, ItemState.MISSING, ItemState.REJECTED):
        return replace(fresh, state=follow(item.state, ItemEvent.REOPEN))
    return fresh


def _begin(
    plan: Plan,
    request: PlanRequest,
    items: tuple[Item, ...],
    number: int,
    read_number: int,
    at_ms: int,
) -> Commit:
    head = Head(
        phase=Phase.WORKING,
        round=number,
        request_id=request.request_id,
        session_id=request.session_id,
        run_id=request.run_id,
        frozen_at_ms=at_ms,
        cutoff_at_ms=cutoff_ms(at_ms, request.commit_within_ms),
        answer_by_ms=at_ms + request.commit_within_ms,
        items=items,
        read_number=read_number,
    )
    return Commit(plan=plan, plan_row=encode_plan(plan), head=head)
