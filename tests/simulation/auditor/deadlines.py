"""Every round ends by its deadline, plus what a restart may cost, once faults have stopped."""

from __future__ import annotations

from tallystick.records import PlanAnswer, PlanVerdict
from tests.simulation.auditor.case import Case

_BEGINS = frozenset({PlanVerdict.FROZEN, PlanVerdict.RESUMED, PlanVerdict.SUPERSEDED})

SLACK_MS = 4_000
"""Without trouble: a worker's clock may be a second and a half late until its first tick."""

TROUBLED_SLACK_MS = 40_000
"""After trouble: a session and a transaction have to time out, then a store is restored."""


def check(case: Case) -> list[str]:
    """Rounds without an ending, and endings that came too late."""
    faults = []
    endings = case.endings()
    for _, place, answer in case.of(PlanAnswer):
        if answer.verdict not in _BEGINS or answer.plan is None:
            continue
        name = f"{answer.commit_key} round {answer.round}"
        ended = [
            end_place.at_ms
            for _, end_place, ending in endings
            if ending.plan_hash == answer.plan.plan_hash and ending.round >= answer.round
        ]
        by_ms = answer.deadline_at_ms + SLACK_MS
        if case.troubled:
            healed_ms = max(case.history.healed_at_ms, place.at_ms)
            by_ms = max(answer.deadline_at_ms, healed_ms) + TROUBLED_SLACK_MS
        if not ended:
            faults.append(f"{name} never ended")
        elif ended[0] > by_ms:
            faults.append(f"{name} ended {ended[0] - answer.deadline_at_ms} ms after its deadline")
    return faults
