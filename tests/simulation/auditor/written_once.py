"""No planned item is written twice where the contract makes that avoidable.

A copy that the network itself made by repeating one call is not ours; nor is one that came of a
person's untrue word, or after the bound that the target declared.
"""

from __future__ import annotations

from tests.simulation.auditor.case import Case
from tests.simulation.history import Landed


def check(case: Case) -> list[str]:
    """Items that more than one of our calls created."""
    made: dict[tuple[str, ...], list[Landed]] = {}
    for landed in case.history.landed:
        sent = landed.sent
        if sent.beyond_bound:
            continue
        name: tuple[str, ...] = (sent.commit_key, sent.tool, sent.identity)
        if not case.readable(sent.tool):
            name = (*name, sent.payload)  # changed content of what nobody can see is another item
        if landed.created and all(sent is not other.sent for other in made.get(name, ())):
            made.setdefault(name, []).append(landed)
    return [
        f"{'/'.join(name)} was created by calls "
        + ", ".join(f"{one.sent.number} (attempt {one.sent.attempt})" for one in copies)
        for name, copies in made.items()
        if len(copies) > 1
        and not any(case.lied_about(one.sent.intent_id, copies[-1].sent.at_ms) for one in copies)
    ]
