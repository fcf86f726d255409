"""The auditor: what must be true of every world, one invariant a file.

It reads what the log shows and what the targets really held. It shares no code with the folds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from tests.simulation.auditor import (
    answers,
    deadlines,
    doubt,
    epochs,
    frozen_plans,
    one_ending,
    partials,
    pinned_keys,
    receipts,
    replays,
    written_once,
)
from tests.simulation.auditor.case import Case, case_of
from tests.simulation.world import World

INVARIANTS: MappingProxyType[str, Callable[[Case], list[str]]] = MappingProxyType(
    {
        "written_once": written_once.check,
        "pinned_keys": pinned_keys.check,
        "doubt_is_respected": doubt.check,
        "receipts_are_true": receipts.check,
        "partials_hide_nothing": partials.check,
        "one_ending": one_ending.check,
        "frozen_plans": frozen_plans.check,
        "every_commit_ends": deadlines.check,
        "callers_are_answered": answers.check,
        "epochs": epochs.check,
        "replays_are_equal": replays.check,
    }
)


@dataclass(frozen=True)
class Verdict:
    """Every broken invariant of a world, as `name: what`, and the known gaps that it met."""

    broken: list[str]
    gaps: Counter[str]


def audit(world: World) -> Verdict:
    """Judge a world that has run."""
    if world.stopped:
        return Verdict([f"partitions_go_on: {world.stopped}"], Counter())
    case = case_of(world)
    broken = [f"{name}: {what}" for name, check in INVARIANTS.items() for what in check(case)]
    return Verdict(broken, case.gaps)
