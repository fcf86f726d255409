"""One receipt a plan, one ending a round, and nothing after the receipt; no dead letters."""

from __future__ import annotations

from tallystick.records import DeadLetter, Receipt
from tests.simulation.auditor.case import Case


def check(case: Case) -> list[str]:
    """Plans and rounds that ended more than once."""
    faults = [f"dead letter: {letter.reason}" for _, _, letter in case.of(DeadLetter)]
    rounds: set[tuple[str, str, int]] = set()
    # Receipts and partial records are two topics: their rounds tell which came first.
    done: dict[tuple[str, str], int] = {}
    for _, _, ending in case.endings():
        if isinstance(ending, Receipt):
            plan = (ending.commit_key, ending.plan_hash)
            if plan in done:
                faults.append(f"{plan[0]}: two receipts for one plan")
            done[plan] = ending.round
    for _, _, ending in case.endings():
        plan = (ending.commit_key, ending.plan_hash)
        if ending.round > done.get(plan, ending.round):
            faults.append(f"{plan[0]}: round {ending.round} ended after the receipt")
        if (*plan, ending.round) in rounds:
            faults.append(f"{plan[0]}: round {ending.round} ended twice")
        rounds.add((*plan, ending.round))
    return faults
