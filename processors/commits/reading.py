"""Decide when the world is to be read, and ask: only after every attempt of the round settled."""

from __future__ import annotations

from processors.commits.readbacks import READABLE_STATES, unresolved
from processors.commits.state import MOVING, Commit, ItemState
from processors.commits.timing import can_read, conclusive_ms, read_backoff_ms
from processors.step import Emit
from tallystick.records import ReadbackRequest, WantedItem
from tallystick.topics import Topic

LAST_READ_MS = 250
"""The last read of a round is asked for this long before the deadline. Lower: its answer comes
too late. Higher: what becomes visible at the very end is missed."""


def moving(commit: Commit) -> bool:
    """Whether a write of this round may still leave or be under way."""
    return any(item.state in MOVING for item in commit.head.items)


def wants_read(commit: Commit) -> bool:
    """Whether a fresh read could still settle an item within this round."""
    return any(unresolved(commit, index) for index in range(len(commit.head.items)))


def next_read_ms(commit: Commit, at_ms: int) -> int | None:
    """When the next read is due, or None if none before the deadline could help.

    The first is due at once. Later ones back off, yet one is due right when a miss becomes
    conclusive, since that one decides, and one shortly before the deadline.
    """
    if not wants_read(commit):
        return None
    head = commit.head
    due_ms = at_ms if head.read_try == 0 else at_ms + read_backoff_ms(head.read_try)
    for index, item in enumerate(head.items):
        if not unresolved(commit, index):
            continue
        ready_ms = conclusive_ms(commit.policy(index), item)
        if ready_ms is not None and at_ms < ready_ms < due_ms:
            due_ms = ready_ms
    last_ms = head.answer_by_ms - LAST_READ_MS
    return min(due_ms, last_ms) if at_ms < last_ms else None


def ask(commit: Commit, at_ms: int) -> tuple[Commit, Emit]:
    """Open a read: the first of a round looks at every item not yet verified, later ones only
    at those still open."""
    head = commit.head
    number = head.read_number + 1
    request_id = f"{commit.plan.plan_hash[:16]}-{head.round}-{number}"
    items = tuple(
        WantedItem(
            tool=planned.tool,
            identity=planned.identity,
            intent_id=item.intent_id,
            payload=planned.payload,
        )
        for index, (planned, item) in enumerate(commit.pairs())
        if can_read(commit.policy(index))
        and (unresolved(commit, index) or (head.read_try == 0 and item.state in READABLE_STATES))
    )
    request = ReadbackRequest(
        request_id=request_id,
        commit_key=commit.plan.commit_key,
        plan_hash=commit.plan.plan_hash,
        contract_name=commit.plan.contract.name,
        contract_hash=commit.plan.contract.hash,
        module=commit.plan.module,
        round=head.round,
        try_number=head.read_try + 1,
        items=items,
    )
    asked = commit.with_head(
        open_read=request_id, open_read_at_ms=at_ms, read_number=number, read_due_ms=0
    )
    return asked, Emit(Topic.READBACK_REQUESTS, commit.plan.commit_key, request)


def readable_last(commit: Commit) -> bool:
    """Whether rejected or missing items were never looked at: a partial must not hide what the
    world holds."""
    return commit.head.read_try == 0 and any(
        item.state in (ItemState.REJECTED, ItemState.MISSING) and can_read(commit.policy(index))
        for index, item in enumerate(commit.head.items)
    )
