"""Fold a fresh read: each planned item is compared with what the world holds, by identity."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.state import Commit, Item, ItemState, Phase, Unplanned
from processors.commits.timing import STRONG_READS, can_read, can_repeat, conclusive_ms
from processors.commits.transitions import ItemEvent, follow
from tallystick.records import (
    EvidenceKind,
    FoundItem,
    KeyStyle,
    Readback,
    ReadbackKind,
    ToolPolicy,
)

READABLE_STATES = frozenset(
    {
        ItemState.CHECKING,
        ItemState.UNKNOWN,
        ItemState.WRITTEN,
        ItemState.REJECTED,
        ItemState.MISSING,
    }
)
"""States that a read can still change."""


def fold_readback(commit: Commit, answer: Readback, at_ms: int) -> Commit:
    """The commit after the answer to its open read; any other answer is stale and ignored."""
    head = commit.head
    if head.phase is not Phase.WORKING or not head.open_read:
        return commit
    if answer.request_id != head.open_read:
        return commit
    asked_at_ms = head.open_read_at_ms
    commit = commit.with_head(open_read="", read_try=head.read_try + 1, read_due_ms=0)
    if answer.error:
        return _note_failure(commit, answer.error, answer.detail)
    # A later read asks for open items alone, so a listing shows it the verified ones as well.
    planned_names = {planned.identity for planned in commit.plan.items}
    unplanned = tuple(
        Unplanned(seen.identity, seen.target_ref)
        for seen in answer.unplanned
        if seen.identity not in planned_names
    )
    commit = commit.with_head(unplanned=unplanned)
    found = {(item.tool, item.identity): item for item in answer.found}
    for index, planned in enumerate(commit.plan.items):
        seen = found.get((planned.tool, planned.identity))
        if seen is not None and commit.head.items[index].state in READABLE_STATES:
            item = judge(commit, index, seen, answer.request_id, asked_at_ms, at_ms)
            commit = commit.with_item(index, item)
    return commit


def _note_failure(commit: Commit, code: str, detail: str) -> Commit:
    """The target could not be read at all; say so where nothing else is known of an item."""
    items = tuple(
        replace(item, code=item.code or code, detail=item.detail or detail)
        if item.state in (ItemState.WRITTEN, ItemState.UNKNOWN, ItemState.CHECKING)
        else item
        for item in commit.head.items
    )
    return commit.with_head(items=items)


def judge(
    commit: Commit, index: int, seen: FoundItem, read_id: str, asked_at_ms: int, at_ms: int
) -> Item:
    """One item's standing after a read that was asked for at `asked_at_ms`."""
    item = commit.head.items[index]
    policy = commit.policy(index)
    if seen.error:
        return replace(item, code=item.code or seen.error)
    if seen.copies == 0:
        return _judge_absent(commit, item, policy, asked_at_ms)
    if seen.copies > 1:
        return _seen(item, ItemEvent.REPEAT, seen, read_id, f"found {seen.copies} times")
    if seen.found_digest == seen.planned_digest:
        return _judge_match(item, seen, read_id)
    return _judge_different(commit, item, policy, seen, read_id, at_ms)


def _judge_match(item: Item, seen: FoundItem, read_id: str) -> Item:
    # Never claimed by a dispatcher, or refused, and there all the same: not our doing.
    ours = item.state in (ItemState.WRITTEN, ItemState.UNKNOWN) or bool(item.doubtful)
    matched = _seen(item, ItemEvent.MATCH, seen, read_id, "")
    existed = item.existed or (not ours and not item.started_at_ms)
    return replace(matched, existed=existed, code="", evidence=EvidenceKind.READBACK)


def _judge_different(
    commit: Commit, item: Item, policy: ToolPolicy, seen: FoundItem, read_id: str, at_ms: int
) -> Item:
    names = ", ".join(seen.differing)
    may_overwrite = (
        item.state is ItemState.CHECKING
        and policy.key_style is KeyStyle.NATURAL
        and at_ms < commit.head.cutoff_at_ms
    )
    if may_overwrite:
        return replace(
            item,
            state=follow(item.state, ItemEvent.ABSENT_AGAIN),
            tries=0,
            differing=seen.differing,
        )
    stale = policy.readback is ReadbackKind.LAGGING and policy.key_style is KeyStyle.NATURAL
    if stale and item.state in (ItemState.WRITTEN, ItemState.UNKNOWN):
        # The older content may still show: not settled until the last read says the same.
        return replace(item, code="content_differs", differing=seen.differing)
    return _seen(item, ItemEvent.DIFFER, seen, read_id, f"differs in {names}")


def _seen(item: Item, event: ItemEvent, seen: FoundItem, read_id: str, detail: str) -> Item:
    return replace(
        item,
        state=follow(item.state, event),
        doubtful=(),
        due_ms=0,
        code="" if event is ItemEvent.MATCH else f"read_{event}",
        detail=detail,
        evidence=EvidenceKind.READBACK,
        evidence_id=read_id,
        found_digest=seen.found_digest,
        differing=seen.differing,
        target_refs=seen.target_refs,
    )


def _judge_absent(commit: Commit, item: Item, policy: ToolPolicy, asked_at_ms: int) -> Item:
    """A miss decides only where the contract makes it conclusive; else the item stays as it is."""
    ready_ms = conclusive_ms(policy, item)
    if ready_ms is None or asked_at_ms < ready_ms:
        return _judge_inconclusive(commit, item, policy, asked_at_ms)
    if item.state is ItemState.WRITTEN and not item.doubtful:
        return _judge_lost(commit, item, policy)
    if item.state in (ItemState.REJECTED, ItemState.MISSING):
        return item
    again = (
        not item.barred
        and asked_at_ms < commit.head.cutoff_at_ms
        and (item.state is ItemState.CHECKING or item.tries < policy.attempts_max)
    )
    event = ItemEvent.ABSENT_AGAIN if again else ItemEvent.ABSENT_LAST
    return replace(
        item,
        state=follow(item.state, event),
        doubtful=(),
        due_ms=0,
        existed=False,
        differing=(),
        code=item.code or ("" if again else "absent"),
    )


def _judge_inconclusive(commit: Commit, item: Item, policy: ToolPolicy, asked_at_ms: int) -> Item:
    """The write may still land. A retry's item goes out again only where a key makes it safe: the
    one it went out under before, and not a successor's own."""
    in_time = asked_at_ms < commit.head.cutoff_at_ms
    same_key = can_repeat(policy) and (item.attempt or policy.key_style is KeyStyle.NATURAL)
    if item.state is ItemState.CHECKING and same_key and in_time:
        return replace(item, state=follow(item.state, ItemEvent.ABSENT_AGAIN))
    return item


def _judge_lost(commit: Commit, item: Item, policy: ToolPolicy) -> Item:
    """Acknowledged, yet not there: a lagging target gets until the deadline, a strong one a few
    reads (a claim of success is not the effect, article 000)."""
    if policy.readback is ReadbackKind.LAGGING or commit.head.read_try < STRONG_READS:
        return replace(item, code="acknowledged_not_found")
    return absent_at_last(item)


def absent_at_last(item: Item) -> Item:
    """The last conclusive read missed an acknowledged item."""
    return replace(
        item,
        state=follow(item.state, ItemEvent.ABSENT_LAST),
        code="acknowledged_not_found",
        detail="the target acknowledged it, and a fresh read did not find it",
    )


def unresolved(commit: Commit, index: int) -> bool:
    """Whether a further read could still settle item `index` within this round."""
    open_states = (ItemState.CHECKING, ItemState.WRITTEN, ItemState.UNKNOWN)
    return commit.head.items[index].state in open_states and can_read(commit.policy(index))
