"""Fold evidence from outside: a person, or the target's owner, settles what no read can see."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.state import Commit, ItemState, Phase
from processors.commits.timing import can_read
from processors.commits.transitions import ItemEvent, follow
from tallystick.records import EvidenceKind, Resolution, ResolutionVerdict

_OPEN = frozenset({ItemState.UNKNOWN, ItemState.WRITTEN})


def fold_resolution(commit: Commit, resolution: Resolution, at_ms: int) -> Commit:
    """The commit after one resolution; one about a settled item, or another's, changes nothing.

    Where the target can be read, "applied" counts as an acknowledgement only: a fresh read still
    decides. Where it cannot, the resolution itself is the evidence.
    """
    index = commit.index_of(resolution.intent_id)
    if index is None or commit.head.phase in (Phase.RECEIPTED, Phase.RETIRED):
        return commit
    item = commit.head.items[index]
    if item.state not in _OPEN:
        return commit
    by = f"{resolution.resolved_by}: {resolution.evidence}"
    if resolution.verdict is ResolutionVerdict.ABSENT:
        if item.state is not ItemState.UNKNOWN:
            return commit
        # Not written again here: the caller's retry does that, in a round of its own.
        absent = replace(
            item,
            state=follow(item.state, ItemEvent.ABSENT_LAST),
            doubtful=(),
            barred=False,
            code="resolved_absent",
            detail=by,
        )
        return commit.with_item(index, absent)
    if resolution.verdict is not ResolutionVerdict.APPLIED:
        return commit
    readable = can_read(commit.policy(index))
    event = ItemEvent.ACKNOWLEDGE if readable else ItemEvent.CERTIFY
    applied = replace(
        item,
        state=follow(item.state, event),
        doubtful=(),
        settled_at_ms=at_ms,
        code="",
        detail=by,
        evidence=item.evidence if readable else EvidenceKind.RESOLUTION,
        evidence_id=item.evidence_id if readable else resolution.resolution_id,
    )
    return commit.with_item(index, applied)
