"""After every fact: issue what may leave, read when all is still, end when nothing can change."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.attempts import doubt
from processors.commits.endings import end
from processors.commits.issue import issue_due
from processors.commits.readbacks import absent_at_last
from processors.commits.reading import (
    LAST_READ_MS,
    ask,
    moving,
    next_read_ms,
    readable_last,
)
from processors.commits.state import Commit, Item, ItemState, Phase
from processors.commits.timing import conclusive_ms
from processors.commits.transitions import ItemEvent, follow
from processors.step import Emit
from tallystick.protocol import CLAIM_SLACK_MS


def advance(commit: Commit, at_ms: int) -> tuple[Commit, tuple[Emit, ...]]:
    """Take every step that the commit's facts allow at log time `at_ms`."""
    if commit.head.phase is not Phase.WORKING:
        return commit, ()
    commit = _expire(commit, at_ms)
    commit, emits = issue_due(commit, at_ms)
    overdue = at_ms >= commit.head.answer_by_ms
    if overdue:
        commit, last = end(_give_up(commit, at_ms), at_ms)
        return commit, (*emits, *last)
    if moving(commit) or commit.head.open_read:
        return commit, emits
    due_ms = commit.head.read_due_ms or next_read_ms(commit, at_ms)
    if due_ms is None and readable_last(commit) and at_ms < commit.head.answer_by_ms - LAST_READ_MS:
        due_ms = at_ms
    if due_ms is None:
        commit, last = end(_give_up(commit, at_ms), at_ms)
        return commit, (*emits, *last)
    if due_ms > at_ms:
        return commit.with_head(read_due_ms=due_ms), emits
    commit, request = ask(commit, at_ms)
    return commit, (*emits, request)


def _expire(commit: Commit, at_ms: int) -> Commit:
    """Claims without an outcome become unknown; intents that nobody claimed are given up."""
    unclaimed_by_ms = commit.head.cutoff_at_ms + CLAIM_SLACK_MS
    for index, item in enumerate(commit.head.items):
        if item.state is ItemState.DISPATCHED and item.due_ms <= at_ms:
            commit = doubt(
                commit, index, item.attempt, "no_outcome", "the dispatcher never reported", at_ms
            )
        elif item.state is ItemState.INTENDED and unclaimed_by_ms <= at_ms:
            commit = commit.with_item(index, _unclaimed(item))
        elif item.state is ItemState.BACKOFF and commit.head.cutoff_at_ms <= at_ms:
            # Due now: issue_due then keeps it back, because the cut-off has passed.
            commit = commit.with_item(index, replace(item, due_ms=at_ms))
    return commit


def _unclaimed(item: Item) -> Item:
    event = ItemEvent.DOUBT_HOLD if item.doubtful else ItemEvent.GIVE_UP
    return replace(
        item,
        state=follow(item.state, event),
        code=item.code or "never_dispatched",
        detail=item.detail or "no dispatcher claimed the intent in time",
    )


def _give_up(commit: Commit, at_ms: int) -> Commit:
    """No further read will come: say of each open item what is known of it."""
    items = tuple(
        _not_hidden(_last_word(commit, index, item, at_ms))
        for index, item in enumerate(commit.head.items)
    )
    return commit.with_head(items=items, open_read="", read_due_ms=0)


def _not_hidden(item: Item) -> Item:
    """What was to be overwritten, and never was, is there with its old content."""
    if item.state is not ItemState.MISSING or not item.differing:
        return item
    return replace(item, state=follow(item.state, ItemEvent.DIFFER), code="content_differs")


def _last_word(commit: Commit, index: int, item: Item, at_ms: int) -> Item:
    if item.state is ItemState.DISPATCHED:
        return replace(
            item,
            state=follow(item.state, ItemEvent.DOUBT_HOLD),
            doubtful=(*item.doubtful, item.attempt),
            due_ms=0,
            code=item.code or "no_outcome",
        )
    if item.state is ItemState.INTENDED:
        return _unclaimed(item)
    if item.state is ItemState.CHECKING:
        # Not read this time. What was never sent cannot be there by our doing.
        event = ItemEvent.DOUBT_HOLD if item.started_at_ms else ItemEvent.GIVE_UP
        return replace(item, state=follow(item.state, event), code=item.code or "not_read")
    held = item.state in (ItemState.UNKNOWN, ItemState.WRITTEN)
    if held and item.code == "content_differs" and item.differing:
        return replace(item, state=follow(item.state, ItemEvent.DIFFER), doubtful=())
    if item.state is ItemState.WRITTEN and item.code == "acknowledged_not_found":
        ready_ms = conclusive_ms(commit.policy(index), item)
        if ready_ms is not None and commit.head.read_try and ready_ms <= at_ms:
            return absent_at_last(item)
    return item
