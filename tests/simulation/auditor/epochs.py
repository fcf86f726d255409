"""While an effect may change the target, its scope is open: OPENED comes of every claim that is
called, and SETTLED only when nothing can change any more.

The dispatcher calls as soon as its claim is logged, so an effect may come before the record that
opens the scope; it must then be the claim's own record that follows. A write under a key that the
target has taken already changes nothing. A person's lie may close a scope too early. Three
more ways are known gaps of the protocol (docs/simulator.md), counted and not reported.
"""

from __future__ import annotations

from typing import NamedTuple

from streams.source import LogRecord
from tallystick.records import Attempt, AttemptPhase, KeyStyle, Mutation, MutationPhase
from tests.simulation.auditor.case import Case
from tests.simulation.history import Landed


class Move(NamedTuple):
    """A scope's epoch moved."""

    turn: int
    at_ms: int
    opened: bool


def check(case: Case) -> list[str]:
    """Effects that changed a target while its scope was settled."""
    moves: dict[tuple[str, str], list[Move]] = {}
    for _, place, mutation in case.of(Mutation):
        name = (mutation.scope, mutation.commit_key)
        move = Move(case.turn_of(place), place.at_ms, mutation.phase is MutationPhase.OPENED)
        moves.setdefault(name, []).append(move)
    claims = {
        (attempt.intent_id, attempt.attempt): place
        for _, place, attempt in case.of(Attempt)
        if attempt.phase is AttemptPhase.STARTED
    }
    faults = []
    for landed in case.history.landed:
        sent = landed.sent
        excused = landed.repeated or sent.beyond_bound
        if excused or case.lied_about(sent.intent_id, landed.at_ms):
            continue
        claim = claims.get((sent.intent_id, sent.attempt))
        name = (case.policy(sent.tool).scope, sent.commit_key)
        if claim is None:
            faults.append(f"call {sent.number} was never claimed")
        elif _open(moves.get(name, []), landed, case.turn_in(claim)) or not _changes(case, landed):
            continue
        elif gap := _known_gap(case, landed, claim):
            case.gaps[gap] += 1
        else:
            faults.append(
                f"{sent.commit_key}/{sent.identity}: call {sent.number} changed {name[0]} "
                f"{landed.at_ms - sent.at_ms} ms after it was sent, while the scope was settled"
            )
    return faults


def _open(moves: list[Move], landed: Landed, claimed: int) -> bool:
    before = [move.opened for move in moves if move.turn <= claimed]
    closed = any(
        not move.opened and move.turn > claimed and move.at_ms <= landed.at_ms for move in moves
    )
    return bool(before) and before[-1] and not closed


def _changes(case: Case, landed: Landed) -> bool:
    """Whether the target looked otherwise just before."""
    sent = landed.sent
    return case.holds(sent.tool, sent.identity, landed.at_ms - 1) != case.holds(
        sent.tool, sent.identity, landed.at_ms
    )


def _known_gap(case: Case, landed: Landed, claim: LogRecord) -> str:
    """A hit on somebody else's copy ends the doubt about ours; a tick that is folded before an
    older claim ends its item without the claim; and where a natural identity is written again,
    the acknowledgement of one attempt ends the doubt about an earlier one."""
    sent = landed.sent
    foreign = any(
        (tool, name) == (sent.tool, sent.identity) for tool, name, _ in case.history.foreign
    )
    if foreign:
        return "foreign_copy_ends_doubt"
    if case.overtaken(claim):
        return "tick_overtakes_claim"
    natural = case.policy(sent.tool).key_style is KeyStyle.NATURAL
    return "natural_overtaken" if natural else ""
