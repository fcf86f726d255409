"""When a commit wants to be woken, and what waking does: log time only, never a clock."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.state import Commit, ItemState, Phase, encode_plan
from tallystick.protocol import CLAIM_SLACK_MS

RETAIN_MS = 30 * 24 * 3_600_000
"""How long an ended commit keeps its plan and items. Lower: a slow caller's retry finds the key
retired. Higher: state and changelog grow. The key itself is kept for ever and never reused."""


def due_ms(commit: Commit) -> int | None:
    """The earliest log time at which something may change without a new fact."""
    head = commit.head
    if head.phase is Phase.WORKING:
        return min(_working_dues(commit))
    if head.phase is Phase.RETIRED or any(item.doubtful for item in head.items):
        # The dedupe record of an unknown effect is never pruned (engine rule 23).
        return None
    return head.ended_at_ms + RETAIN_MS


def _working_dues(commit: Commit) -> list[int]:
    head = commit.head
    dues = [head.answer_by_ms]
    if head.read_due_ms and not head.open_read:
        dues.append(head.read_due_ms)
    for item in head.items:
        if item.state is ItemState.DISPATCHED:
            dues.append(item.due_ms)
        elif item.state is ItemState.BACKOFF:
            dues.append(min(item.due_ms, head.cutoff_at_ms))
        elif item.state is ItemState.INTENDED:
            dues.append(head.cutoff_at_ms + CLAIM_SLACK_MS)
    return dues


def retire(commit: Commit) -> Commit:
    """Forget the content of an ended commit but not its key; a receipt stays answerable in the
    log, and a request under this key is refused."""
    plan = replace(commit.plan, items=(), policies=())
    head = replace(commit.head, phase=Phase.RETIRED, items=(), unplanned=())
    return Commit(plan=plan, plan_row=encode_plan(plan), head=head)
