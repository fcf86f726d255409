"""Seeds that once broke an invariant, by the name of what was wrong with the fold.

Each must hold now, and must fail with the old fault put back: when a change of the simulator
shifts what a seed brings about, `explore.first_caught` names another seed for the table. Each
fault also has a test of its own in `tests/commits/test_found_by_simulation.py`.
"""

from __future__ import annotations

import pytest

from tests.simulation.explore import run_seed
from tests.simulation.plants import Bug
from tests.simulation.returned import RETURNED

SEEDS = {
    "a successor believes a miss before the old write can be seen": 112,
    "a successor's own key is taken to make a miss safe": 1542,
    "a read answered after the cut-off stops the partition": 28,
    "what was to be overwritten is called missing": 1908,
    "a different item that is to differ again stops the partition": 441,
}


@pytest.mark.parametrize("bug", RETURNED, ids=lambda bug: bug.name)
def test_a_seed_that_once_failed_holds_and_still_fails_with_its_fault(
    bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = SEEDS[bug.name]
    assert run_seed(seed)[1].broken == []

    bug.plant(monkeypatch)

    assert run_seed(seed)[1].broken


@pytest.mark.xfail(reason="open: an acknowledged item is called missing", strict=True)
def test_an_acknowledged_item_that_a_lagging_read_missed_is_not_called_missing() -> None:
    """A retry's read missed it within the lag, the same key went out again and was refused until
    the deadline: that the first attempt was acknowledged is forgotten."""
    assert run_seed(6567)[1].broken == []
