"""Every caller that goes on waiting gets what the log says of its own plan, and nothing else."""

from __future__ import annotations

from tallystick.errors import RefusedError, TallyError
from tallystick.records import Receipt
from tests.simulation.auditor.case import Case


def check(case: Case) -> list[str]:
    """Callers without an ending, or with one that is not theirs."""
    faults = []
    logged = [ending for _, _, ending in case.endings()]
    for asked in case.asked:
        name, ending = asked.request.request_id, asked.ending
        plan = asked.request.plan
        answer = asked.pending.answer
        if ending is None:
            verdict = answer.verdict if answer is not None else "no answer"
            faults.append(f"{name} ({plan.commit_key}, {verdict}) waits for ever")
        elif isinstance(ending, RefusedError) and ending.reason == "key_retired":
            faults.append(f"{name} ({plan.commit_key}) was forgotten within hours")
        elif isinstance(ending, TallyError):
            continue
        elif ending.plan_hash != plan.plan_hash or ending not in logged:
            faults.append(f"{name} got an ending that is not of its plan")
        elif not isinstance(ending, Receipt) and answer and ending.round < answer.round:
            faults.append(f"{name} got the ending of an earlier round")
    return faults
