"""An unknown effect is never issued again without a reason that the contract gives.

Without a key the reasons are: the call was surely not executed, or refused for good; a person
said so; or a look, after everything in flight must have landed and become visible, missed it.
"""

from __future__ import annotations

from tallystick.records import AttemptOutcome
from tests.simulation.auditor.case import Case
from tests.simulation.history import Looked, Sent

_DONE_WITH = frozenset({AttemptOutcome.NOT_EXECUTED, AttemptOutcome.REJECTED})
_ANSWERED = frozenset({AttemptOutcome.APPLIED, AttemptOutcome.EXISTS})


def check(case: Case) -> list[str]:
    """Calls that followed one whose effect was still possible."""
    looks = list(case.looks().values())
    faults = []
    by_item: dict[tuple[str, str, str], list[Sent]] = {}
    for sent in case.history.sent:
        if not case.keyed(sent.tool):
            by_item.setdefault((sent.commit_key, sent.tool, sent.identity), []).append(sent)
    for name, calls in by_item.items():
        for index, again in enumerate(calls):
            faults += [
                f"{'/'.join(name)}: call {again.number} went out while call {first.number} "
                f"({first.told or 'never answered'}) could still take effect"
                for first in calls[:index]
                if first.payload == again.payload and not _settled(case, first, again, looks)
            ]
    return faults


def _settled(case: Case, first: Sent, again: Sent, looks: list[Looked]) -> bool:
    known = first.told is not None and first.told_at_ms <= again.at_ms
    if known and first.told in _DONE_WITH:
        return True
    if any(s.intent_id == first.intent_id and s.at_ms <= again.at_ms for s in case.history.said):
        return True
    policy = case.policy(first.tool)
    if known and first.told in _ANSWERED:
        clear_ms = first.told_at_ms + policy.visibility_lag_ms
    elif policy.in_flight_ms is not None:
        clear_ms = first.at_ms + policy.in_flight_ms + policy.visibility_lag_ms
    else:
        return False
    return any(
        clear_ms <= look.at_ms <= again.at_ms and _missed(look, first)
        for look in looks
        if look.request.commit_key == first.commit_key
    )


def _missed(look: Looked, sent: Sent) -> bool:
    return any(
        (item.tool, item.identity) == (sent.tool, sent.identity)
        and item.copies == 0
        and not item.error
        for item in look.answer.found
    )
