"""The commits stage's fold: every input record of one commit key, in log order."""

from __future__ import annotations

from processors.commits.advance import advance
from processors.commits.attempts import fold_attempt
from processors.commits.endings import status_of
from processors.commits.freeze import fold_request
from processors.commits.observe import observe
from processors.commits.readbacks import fold_readback
from processors.commits.resolutions import fold_resolution
from processors.commits.rounds import late_round
from processors.commits.state import Commit, ItemState, Phase, pack, unpack
from processors.commits.timers import due_ms, retire
from processors.step import Emit, Step
from tallystick.errors import InvariantBroken
from tallystick.records import (
    VERIFIED,
    Attempt,
    ItemStatus,
    PlanRequest,
    Readback,
    Record,
    Resolution,
    UnplannedItem,
    Verification,
    VerifiedItem,
)
from tallystick.topics import Topic


class CommitsFold:
    """Freeze, intend, settle, read back, reconcile, end (DESIGN.md, the commit protocol)."""

    def apply(self, key: str, state: Commit | None, record: Record, at_ms: int) -> Step[Commit]:
        """Fold one request, attempt, read-back or resolution."""
        if isinstance(record, PlanRequest):
            after, answers = fold_request(key, state, record, at_ms)
            return _finish(state, after, answers, at_ms)
        if state is None:
            # A fact about a commit that this log never froze: there is nothing to settle.
            return Step(None)
        match record:
            case Attempt():
                return _with_late_facts(state, fold_attempt(state, record, at_ms), at_ms)
            case Resolution():
                return _with_late_facts(state, fold_resolution(state, record, at_ms), at_ms)
            case Readback():
                after = fold_readback(state, record, at_ms)
                if after is state:
                    return Step(state)
                seen = () if record.error else (_verification(after, record, at_ms),)
                return _finish(state, after, seen, at_ms)
            case _:
                raise InvariantBroken(f"the commits stage does not take {type(record).__name__}")

    def wake(self, key: str, state: Commit, at_ms: int) -> Step[Commit]:
        """Take what time alone allows: expiries, retries, due reads, the deadline, retirement."""
        del key
        if state.head.phase is Phase.WORKING:
            return _finish(state, state.with_head(), (), at_ms)
        wanted = due_ms(state)
        if wanted is None or wanted > at_ms:
            return Step(state)
        return Step(retire(state))

    def due_ms(self, state: Commit) -> int | None:
        """When this commit wants to be woken."""
        return due_ms(state)

    def pack(self, state: Commit) -> tuple[bytes, ...]:
        """The commit as rows."""
        return pack(state)

    def unpack(self, rows: tuple[bytes, ...]) -> Commit:
        """The inverse of `pack`."""
        return unpack(rows)


def _with_late_facts(before: Commit, after: Commit, at_ms: int) -> Step[Commit]:
    """A fact that changes an ended commit opens a round that looks again and corrects it."""
    if after is before or after == before:
        return Step(before)
    if before.head.phase is Phase.PARTIAL:
        after = late_round(after, at_ms)
    return _finish(before, after, (), at_ms)


def _finish(
    before: Commit | None, after: Commit | None, emits: tuple[Emit, ...], at_ms: int
) -> Step[Commit]:
    if after is None or after is before:
        return Step(after, emits)
    moved, more = advance(after, at_ms)
    return Step(moved, (*emits, *more, *observe(before, moved, at_ms)))


def _verification(commit: Commit, answer: Readback, at_ms: int) -> Emit:
    """What this read established; an item still open is unknown, whatever the call said."""
    asked = {(found.tool, found.identity) for found in answer.found}
    items = tuple(
        VerifiedItem(
            tool=planned.tool,
            identity=planned.identity,
            status=_seen_status(item.state, status_of(item) if _ended(item.state) else None),
            found_digest=item.found_digest,
        )
        for planned, item in commit.pairs()
        if (planned.tool, planned.identity) in asked
    )
    record = Verification(
        commit_key=commit.plan.commit_key,
        plan_hash=commit.plan.plan_hash,
        request_id=answer.request_id,
        round=commit.head.round,
        items=items,
        unplanned=tuple(
            UnplannedItem(identity=seen.identity, target_ref=seen.target_ref)
            for seen in commit.head.unplanned
        ),
        planned_count=len(commit.plan.items),
        verified_count=sum(item.status in VERIFIED for item in items),
        verified_at_ms=at_ms,
    )
    return Emit(Topic.VERIFICATIONS, commit.plan.commit_key, record)


def _ended(state: ItemState) -> bool:
    return state in (ItemState.VERIFIED, ItemState.DIFFERENT, ItemState.DUPLICATE)


def _seen_status(state: ItemState, settled: ItemStatus | None) -> ItemStatus:
    if settled is not None:
        return settled
    if state in (ItemState.PLANNED, ItemState.MISSING, ItemState.REJECTED):
        return ItemStatus.MISSING
    return ItemStatus.UNKNOWN
