"""A frozen plan never changes: only an explicit successor takes its place, and only its items
leave."""

from __future__ import annotations

from tallystick.records import Intent, Plan, PlanAnswer, PlanVerdict
from tests.simulation.auditor.case import Case

_STANDS = frozenset(
    {PlanVerdict.JOINED, PlanVerdict.RESUMED, PlanVerdict.COMPLETED, PlanVerdict.DRIFT}
)


def check(case: Case) -> list[str]:
    """Answers that show another plan than the frozen one, and intents that it does not hold."""
    faults = []
    wanted = {asked.request.request_id: asked.request for asked in case.asked}
    stands: dict[str, Plan] = {}
    since: dict[str, list[tuple[int, Plan]]] = {}
    for _, place, answer in case.of(PlanAnswer):
        key, plan = answer.commit_key, answer.plan
        before = stands.get(key)
        if answer.verdict in _STANDS and plan != before:
            faults.append(f"{key}: {answer.verdict} shows another plan than the frozen one")
        if answer.verdict is PlanVerdict.FROZEN and before is not None:
            faults.append(f"{key}: frozen twice")
        if answer.verdict is PlanVerdict.SUPERSEDED:
            named = wanted[answer.request_id].supersedes
            if before is None or named != before.plan_hash:
                faults.append(f"{key}: superseded a plan that it did not name")
        if answer.verdict in (PlanVerdict.FROZEN, PlanVerdict.SUPERSEDED) and plan is not None:
            stands[key] = plan
            since.setdefault(key, []).append((place.at_ms, plan))
    for _, place, intent in case.of(Intent):
        known = [plan for at_ms, plan in since.get(intent.commit_key, []) if at_ms <= place.at_ms]
        present = known[-1] if known else None
        item = (intent.tool, intent.identity, intent.payload)
        if present is None or intent.plan_hash != present.plan_hash:
            faults.append(f"{intent.commit_key}: an intent left for a plan that does not stand")
        elif item not in [(i.tool, i.identity, i.payload) for i in present.items]:
            faults.append(f"{intent.commit_key}: {intent.identity} left and is not planned so")
    return faults
