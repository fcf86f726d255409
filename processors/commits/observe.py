"""Tell sessions and scopes what a step changed, by comparing the commit before and after it."""

from __future__ import annotations

from processors.commits.state import Commit, Item, ItemState
from processors.step import Emit
from tallystick.records import Effect, EffectStatus, Mutation, MutationPhase
from tallystick.topics import Topic

_EFFECTS = {
    ItemState.DISPATCHED: EffectStatus.DISPATCHED,
    ItemState.WRITTEN: EffectStatus.ACKNOWLEDGED,
    ItemState.UNKNOWN: EffectStatus.UNKNOWN,
    ItemState.REJECTED: EffectStatus.REJECTED,
    ItemState.MISSING: EffectStatus.MISSING,
    ItemState.DIFFERENT: EffectStatus.DIFFERENT,
    ItemState.DUPLICATE: EffectStatus.DUPLICATE,
}


def observe(before: Commit | None, after: Commit, at_ms: int) -> tuple[Emit, ...]:
    """Effects for the owning session, and mutations for every scope that was (un)settled."""
    return (*_effects(before, after, at_ms), *_mutations(before, after, at_ms))


def effect_status(item: Item) -> EffectStatus | None:
    """What a session is told of this standing; None while nothing can have happened."""
    if item.state is ItemState.VERIFIED:
        return EffectStatus.EXISTED_BEFORE if item.existed else EffectStatus.APPLIED
    if item.state is ItemState.BACKOFF:
        return EffectStatus.UNKNOWN if item.doubtful else EffectStatus.NOT_EXECUTED
    return _EFFECTS.get(item.state)


def _effects(before: Commit | None, after: Commit, at_ms: int) -> tuple[Emit, ...]:
    session_id = after.head.session_id
    if session_id is None:
        return ()
    known = {} if before is None else {item.intent_id: item for item in before.head.items}
    emits = []
    for planned, item in after.pairs():
        status = effect_status(item)
        old = known.get(item.intent_id)
        if status is None or (old is not None and effect_status(old) is status):
            continue
        effect = Effect(
            session_id=session_id,
            run_id=after.head.run_id,
            commit_key=after.plan.commit_key,
            plan_hash=after.plan.plan_hash,
            intent_id=item.intent_id,
            tool=planned.tool,
            identity=planned.identity,
            attempt=item.attempt,
            status=status,
            at_ms=at_ms,
        )
        emits.append(Emit(Topic.EFFECTS, session_id, effect, spread=True))
    return tuple(emits)


def _mutations(before: Commit | None, after: Commit, at_ms: int) -> tuple[Emit, ...]:
    old, new = _unsettled(before), _unsettled(after)
    emits = []
    for scope in sorted({*old, *new}):
        was, now = old.get(scope, 0), new.get(scope, 0)
        if (was == 0) == (now == 0):
            continue
        mutation = Mutation(
            scope=scope,
            commit_key=after.plan.commit_key,
            plan_hash=after.plan.plan_hash,
            phase=MutationPhase.OPENED if now else MutationPhase.SETTLED,
            unsettled=now,
            at_ms=at_ms,
        )
        emits.append(Emit(Topic.MUTATIONS, scope, mutation, spread=True))
    return tuple(emits)


def _unsettled(commit: Commit | None) -> dict[str, int]:
    """How many effects are in flight or unknown, by scope."""
    counts: dict[str, int] = {}
    if commit is None:
        return counts
    for index, item in enumerate(commit.head.items):
        if item.unsettled:
            scope = commit.policy(index).scope
            counts[scope] = counts.get(scope, 0) + 1
    return counts
