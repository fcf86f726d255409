"""Simulated worlds keep every invariant; one seed always gives the same world."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.auditor import INVARIANTS
from tests.simulation.explore import CRASH_POINTS, explore, named_points, run_seed, shrink, tell
from tests.simulation.plants import BUGS

ROOT = Path(__file__).parents[2]
SEEDS, PARTS = 320, 4
"""Worlds in the normal suite. Higher: a longer suite; `tallystick sim` runs as many as you like."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_world_breaks_an_invariant(part: int) -> None:
    summary = explore(range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS))

    assert summary.failures == {}
    assert summary.seeds == SEEDS // PARTS
    assert summary.receipts
    assert summary.partials
    assert summary.calls


def test_one_seed_gives_one_world_in_any_process() -> None:
    program = "from tests.simulation.explore import tell; print('\\n'.join(tell(7)))"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert told == {"\n".join(tell(7)) + "\n"}


def test_a_failing_world_shrinks_and_still_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = next(bug for bug in BUGS if bug.name == "receipt on partial")
    bug.plant(monkeypatch)
    seed = next(seed for seed in range(50) if run_seed(seed)[1].broken)

    left_out = shrink(seed)
    world, verdict = run_seed(seed, left_out)

    assert verdict.broken
    assert len(world.dice.struck) < len(run_seed(seed)[0].dice.struck)


def test_every_point_that_production_names_is_one_where_a_world_may_crash() -> None:
    here = {point.partition(".")[2] for point in CRASH_POINTS}
    only_there = named_points() - here

    assert only_there == {"after_abort"}, "an abort is one step here, so nothing lies behind it"


def test_there_is_one_invariant_a_file() -> None:
    files = {path.stem for path in (Path(__file__).parent / "auditor").glob("*.py")}

    assert len(files - {"__init__", "case"}) == len(INVARIANTS)
