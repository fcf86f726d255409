"""A world's story, a line an event: log records, calls, effects, looks and words, in one order."""

from __future__ import annotations

import json
from collections.abc import Iterator

from streams.source import LogRecord
from tallystick.records import (
    Attempt,
    Intent,
    Mutation,
    PartialSuccess,
    PlanAnswer,
    PlanRequest,
    Readback,
    ReadbackRequest,
    Receipt,
    Resolution,
)
from tests.simulation.clock import START_MS
from tests.simulation.world import World


def trace(world: World) -> list[str]:
    """What happened, with milliseconds since the world's start."""
    events = [*_setting(world), *_log(world), *_outside(world)]
    return [f"{at_ms - START_MS:>9} {told}" for at_ms, _, told in sorted(events)]


def _setting(world: World) -> Iterator[tuple[int, int, str]]:
    for policy in world.policies:
        yield (
            START_MS,
            0,
            f"{policy.tool}: key {policy.key_style}, read {policy.readback}, bound "
            f"{policy.in_flight_ms}, lag {policy.visibility_lag_ms}, tries {policy.attempts_max}, "
            f"timeout {policy.call_timeout_ms}",
        )
    yield START_MS, 0, f"faults: {world.dice.struck}"


def _log(world: World) -> Iterator[tuple[int, int, str]]:
    for index, (at_ms, record) in enumerate(world.shown):
        told = _tell(record)
        if told:
            yield at_ms, 2 + index, f"{record.topic}[{record.partition}]@{record.offset} {told}"


def _tell(record: LogRecord) -> str:
    match record.record:
        case PlanRequest() as r:
            names = [(i.tool, i.identity, json.loads(i.payload)["title"]) for i in r.plan.items]
            old = f" supersedes {r.supersedes[:6]}" if r.supersedes else ""
            return (
                f"{r.request_id} {record.key} {r.plan.plan_hash[:6]}{old} {names} within "
                f"{r.commit_within_ms}"
            )
        case PlanAnswer() as r:
            due_ms = r.deadline_at_ms - START_MS
            return f"{r.request_id} {record.key} {r.verdict} {r.reason} round {r.round} by {due_ms}"
        case Intent() as r:
            return f"{r.identity} {r.intent_id[:6]} attempt {r.attempt} round {r.round}"
        case Attempt() as r:
            return f"{r.intent_id[:6]} attempt {r.attempt} {r.phase} {r.outcome} {r.code}"
    return _tell_end(record)


def _tell_end(record: LogRecord) -> str:
    match record.record:
        case ReadbackRequest() as r:
            return f"{r.request_id} {[i.identity for i in r.items]}"
        case Readback() as r:
            seen = [(i.identity, i.copies, i.found_digest, i.error) for i in r.found]
            return f"{r.request_id} {r.error} {seen}"
        case Resolution() as r:
            return f"{r.intent_id[:6]} {r.verdict}"
        case Mutation() as r:
            return f"{r.scope} {r.commit_key} {r.phase} {r.unsettled}"
        case PartialSuccess() as r:
            told = [(i.identity, str(i.status), i.code) for i in r.items]
            return f"{record.key} {r.plan_hash[:6]} round {r.round} {r.reason} {told}"
        case Receipt() as r:
            told = [(i.identity, str(i.status), str(i.evidence)) for i in r.items]
            return f"{record.key} {r.plan_hash[:6]} round {r.round} {told}"
    return ""


def _outside(world: World) -> Iterator[tuple[int, int, str]]:
    history = world.history
    for sent in history.sent:
        told = f"call {sent.number} of {sent.identity} {sent.intent_id[:6]}: sent"
        yield sent.at_ms, 1, f"    {told}, attempt {sent.attempt}"
        if sent.told is not None:
            yield sent.told_at_ms, 1, f"    call {sent.number}: told {sent.told}"
    for landed in history.landed:
        again = " again" if landed.repeated else ""
        yield landed.at_ms, 1, f"    call {landed.sent.number}: landed{again} {landed.content}"
    for look in history.looked:
        yield look.at_ms, 1, f"    look {look.request.request_id}: {look.truth}"
    for said in history.said:
        told = f"said {said.intent_id[:6]} applied={said.applied} true={said.true}"
        yield said.at_ms, 1, f"    {told}"
