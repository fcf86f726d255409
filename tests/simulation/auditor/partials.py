"""No partial record hides a written, missing or different item.

Judged by what could be known: the last look of the round, and calls whose effect had landed or
could still land by their contract. A person's lie is believed only where nothing can be read. A
claim that was folded after the record was made (topics are not ordered among each other) could
not be known, unless that record stayed the last word.
"""

from __future__ import annotations

from streams.source import LogRecord
from tallystick.records import (
    VERIFIED,
    Attempt,
    AttemptPhase,
    FoundItem,
    ItemStatus,
    KeyStyle,
    PartialItem,
    PartialSuccess,
    PlanAnswer,
    ReadbackKind,
)
from tests.simulation.auditor.case import Case
from tests.simulation.history import Looked

_ABSENT = frozenset({ItemStatus.MISSING, ItemStatus.REJECTED})
_PRESENT = frozenset({*VERIFIED, ItemStatus.DIFFERENT, ItemStatus.DUPLICATE})


def check(case: Case) -> list[str]:
    """Items that a partial record shows in another light than could be known."""
    plans = {a.plan.plan_hash: a.plan for _, _, a in case.of(PlanAnswer) if a.plan is not None}
    seen = case.last_seen()
    faults = []
    last = {
        ending.commit_key: ending
        for _, _, ending in sorted(case.endings(), key=lambda found: found[2].round)
    }
    for at_ms, place, partial in case.of(PartialSuccess):
        plan = plans.get(partial.plan_hash)
        if plan is None or [i.identity for i in plan.items] != [i.identity for i in partial.items]:
            faults.append(f"{partial.commit_key}: does not name every planned item")
            continue
        looked = seen.get((partial.plan_hash, partial.round), {})
        for planned, item in zip(plan.items, partial.items, strict=True):
            told = _against_look(case, item, looked.get((item.tool, item.identity)), at_ms)
            told = told or _against_calls(case, item, planned.payload, at_ms)
            if told and partial != last[partial.commit_key] and _unheard(case, item, place):
                case.gaps["tick_overtakes_claim"] += 1
            elif told:
                faults.append(
                    f"{partial.commit_key}/{item.identity} round {partial.round} is {item.status} "
                    f"({item.code}), but {told}"
                )
    return faults


def _unheard(case: Case, item: PartialItem, place: LogRecord) -> bool:
    """Whether a claim on the item was folded only after the partial record was made, or any fact
    about it after a tick that was logged later."""
    made = case.turn_of(place)
    return any(
        case.overtaken(fact)
        or (attempt.phase is AttemptPhase.STARTED and case.turn_in(fact) > made)
        for _, fact, attempt in case.of(Attempt)
        if attempt.intent_id == item.intent_id
    )


def _against_look(
    case: Case, item: PartialItem, seen: tuple[Looked, FoundItem] | None, at_ms: int
) -> str:
    if seen is None:
        return ""
    look, found = seen
    asked_ms = case.asked_at(look.request.request_id)
    since = case.called_at(item.intent_id)
    if item.status is ItemStatus.UNKNOWN:
        since += case.claimed_at(item.intent_id)  # the claim alone is a reason to doubt
    if any(asked_ms <= moment_ms <= at_ms for moment_ms in since):
        return ""  # it may have been written since that look was asked for
    if found.copies > 1:
        return "" if item.status is ItemStatus.DUPLICATE else f"{found.copies} copies were seen"
    if found.copies == 0:
        told_of = item.status in (ItemStatus.DIFFERENT, ItemStatus.UNKNOWN)
        hidden = item.status in _PRESENT and not told_of
        return "the last look missed it" if hidden else ""
    if found.found_digest == found.planned_digest:
        return "" if item.status in VERIFIED else "the last look found it as planned"
    policy = case.policy(item.tool)
    stale = policy.readback is ReadbackKind.LAGGING and policy.key_style is KeyStyle.NATURAL
    allowed = {ItemStatus.DIFFERENT, *((ItemStatus.UNKNOWN,) if stale else ())}
    return "" if item.status in allowed else "the last look found other content"


def _against_calls(case: Case, item: PartialItem, content: str, at_ms: int) -> str:
    if case.lied_about(item.intent_id, at_ms):
        return ""
    landed = [
        one
        for one in case.history.landed
        if one.sent.intent_id == item.intent_id
        and one.content == content
        and not one.sent.beyond_bound
    ]
    if item.status in _ABSENT:
        before = [one for one in landed if one.at_ms <= at_ms]
        if before:
            return f"call {before[0].sent.number} had written it"
        coming = [one for one in landed if one.sent.at_ms <= at_ms]
        if coming:
            return f"call {coming[0].sent.number} was still on its way, and wrote it"
    if item.status in VERIFIED and case.readable(item.tool):
        there = case.holds(item.tool, item.identity, at_ms)
        if content not in there:
            return f"the target holds {there}"
    return ""
