"""The auditor notices: every planted bug breaks an invariant within five hundred seeds."""

from __future__ import annotations

import sys

import pytest

from tests.simulation.explore import first_caught
from tests.simulation.plants import BUGS, Bug

SEEDS_MAX = 500


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(
    bug: Bug, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bug.plant(monkeypatch)

    caught = first_caught(range(SEEDS_MAX))

    assert caught is not None, f"not caught within {SEEDS_MAX} seeds"
    seed, broken = caught
    with capsys.disabled():
        sys.stdout.write(f"\n{bug.name}: caught in {seed + 1} seeds by {broken[0]}\n")


def test_there_are_at_least_twelve_different_bugs() -> None:
    assert len({bug.plant for bug in BUGS}) == len({bug.name for bug in BUGS}) == len(BUGS) >= 12
