"""Fold claims and outcomes of calls into the item that they are about."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.state import Commit, Item, ItemState, Phase
from processors.commits.timing import backoff_ms, can_read, can_repeat, claim_expires_ms
from processors.commits.transitions import ItemEvent, follow
from tallystick.records import (
    Attempt,
    AttemptOutcome,
    AttemptPhase,
    EvidenceKind,
    ToolPolicy,
)

# A later fact changes nothing about these: a read, a person or the target's own answer settled it.
_CLOSED = frozenset(
    {ItemState.VERIFIED, ItemState.DIFFERENT, ItemState.DUPLICATE, ItemState.REJECTED}
)
_REPLY_EVENTS = {
    AttemptOutcome.APPLIED: ItemEvent.ACKNOWLEDGE,
    AttemptOutcome.EXISTS: ItemEvent.ACKNOWLEDGE,
    AttemptOutcome.EXISTS_DIFFERENT: ItemEvent.CONFLICT,
}


def fold_attempt(commit: Commit, fact: Attempt, at_ms: int) -> Commit:
    """The commit after one claim or outcome; a fact that tells nothing new changes nothing."""
    index = commit.index_of(fact.intent_id)
    if index is None or commit.head.phase in (Phase.RECEIPTED, Phase.RETIRED):
        return commit
    item = commit.head.items[index]
    if fact.attempt > item.attempt or item.state in _CLOSED:
        return commit
    if fact.phase is AttemptPhase.STARTED:
        return _claim(commit, index, fact, at_ms)
    if fact.phase is not AttemptPhase.SETTLED:
        return commit
    return _settle(commit, index, fact, at_ms)


def _claim(commit: Commit, index: int, fact: Attempt, at_ms: int) -> Commit:
    """A dispatcher is about to call; a claim logged after the intent expired is not followed
    by a call (both sides decide by the claim's log time)."""
    item = commit.head.items[index]
    if fact.attempt != item.attempt or at_ms > commit.head.cutoff_at_ms:
        return commit
    if item.state not in (ItemState.INTENDED, ItemState.MISSING):
        return commit
    claimed = replace(
        item,
        state=follow(item.state, ItemEvent.CLAIM),
        started_at_ms=at_ms,
        due_ms=claim_expires_ms(commit.policy(index), at_ms),
        code="",
        detail="",
    )
    return commit.with_item(index, claimed)


def _settle(commit: Commit, index: int, fact: Attempt, at_ms: int) -> Commit:
    """What came back from the target, or from the dispatcher that refused to call it."""
    item = commit.head.items[index]
    unknown = fact.outcome in (AttemptOutcome.UNKNOWN, AttemptOutcome.PENDING)
    if item.state is ItemState.WRITTEN or (unknown and fact.attempt < item.attempt):
        return commit
    if unknown:
        return doubt(commit, index, fact.attempt, fact.code, fact.detail, at_ms)
    cleared = replace(item, doubtful=tuple(n for n in item.doubtful if n != fact.attempt))
    replied = fact.outcome in _REPLY_EVENTS
    if item.state is ItemState.CHECKING or (
        fact.attempt < item.attempt and not (replied and can_repeat(commit.policy(index)))
    ):
        # A read is about to decide, or a newer attempt is out: only the doubt is lifted.
        if cleared == item:
            return commit
        return commit.with_item(index, replace(cleared, settled_at_ms=at_ms))
    if replied:
        return commit.with_item(index, _replied(commit, index, cleared, fact, at_ms))
    if fact.outcome is AttemptOutcome.NOT_EXECUTED:
        return commit.with_item(index, _refused(commit, index, cleared, fact, at_ms))
    # Refused for good, though an older attempt in doubt may still have written it.
    event = ItemEvent.DOUBT_HOLD if cleared.doubtful else ItemEvent.REJECT
    return commit.with_item(index, _answered(cleared, event, fact, at_ms, barred=True))


def _answered(
    item: Item, event: ItemEvent, fact: Attempt, at_ms: int, *, barred: bool = False
) -> Item:
    return replace(
        item,
        state=follow(item.state, event),
        barred=item.barred or barred,
        settled_at_ms=at_ms,
        due_ms=0,
        code=fact.code,
        detail=fact.detail,
    )


def _replied(commit: Commit, index: int, item: Item, fact: Attempt, at_ms: int) -> Item:
    """The target says that the item is there, whichever attempt put it there."""
    policy = commit.policy(index)
    event = _REPLY_EVENTS[fact.outcome]
    if event is ItemEvent.CONFLICT:
        return _answered(item, event, fact, at_ms)
    certified = certifies(policy, fact.target_ref)
    if certified:
        event = ItemEvent.CERTIFY
    in_doubt_before = bool(commit.head.items[index].doubtful)
    found_first = fact.outcome is AttemptOutcome.EXISTS and fact.attempt == 1
    return replace(
        _answered(item, event, fact, at_ms),
        # Behind one key (or one natural identity) all attempts are one effect.
        doubtful=() if can_repeat(policy) else item.doubtful,
        existed=item.existed or (found_first and not in_doubt_before),
        code="",
        detail="",
        differing=(),
        target_refs=(fact.target_ref,) if fact.target_ref else item.target_refs,
        evidence=EvidenceKind.ACKNOWLEDGEMENT if certified else item.evidence,
        evidence_id=(fact.target_ref or "") if certified else item.evidence_id,
    )


def certifies(policy: ToolPolicy, target_ref: str | None) -> bool:
    """Whether the target's own receipt stands for a read that cannot be made."""
    return not can_read(policy) and policy.acknowledgement and bool(target_ref)


def _refused(commit: Commit, index: int, item: Item, fact: Attempt, at_ms: int) -> Item:
    """Not executed: another attempt may be made, with the same key, after a pause."""
    policy = commit.policy(index)
    pause_ms = max(backoff_ms(policy, item.tries, item.intent_id), fact.retry_after_ms or 0)
    due_ms = at_ms + pause_ms
    if item.doubtful and not can_repeat(policy):
        return _answered(item, ItemEvent.DOUBT_HOLD, fact, at_ms)
    if item.tries < policy.attempts_max and due_ms < commit.head.cutoff_at_ms and not item.barred:
        return replace(_answered(item, ItemEvent.REFUSE_AGAIN, fact, at_ms), due_ms=due_ms)
    last = ItemEvent.DOUBT_HOLD if item.doubtful else ItemEvent.REFUSE_LAST
    return _answered(item, last, fact, at_ms)


def doubt(commit: Commit, index: int, attempt: int, code: str, detail: str, at_ms: int) -> Commit:
    """An attempt's outcome is unknown: repeat it under its key, or hold until a read decides."""
    item = commit.head.items[index]
    policy = commit.policy(index)
    doubtful = tuple(sorted({*item.doubtful, attempt}))
    if item.state is ItemState.CHECKING:
        return commit.with_item(index, replace(item, doubtful=doubtful, settled_at_ms=at_ms))
    due_ms = at_ms + backoff_ms(policy, item.tries, item.intent_id)
    again = (
        can_repeat(policy)
        and not item.barred
        and item.tries < policy.attempts_max
        and due_ms < commit.head.cutoff_at_ms
    )
    event = ItemEvent.DOUBT_AGAIN if again else ItemEvent.DOUBT_HOLD
    held = replace(
        item,
        state=follow(item.state, event),
        doubtful=doubtful,
        started_at_ms=item.started_at_ms or at_ms,
        settled_at_ms=at_ms,
        due_ms=due_ms if again else 0,
        code=code,
        detail=detail,
    )
    return commit.with_item(index, held)
