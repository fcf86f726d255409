"""`tallystick sim`: what it prints, and what it says where the simulator is not there."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import ops.cli.sim
from ops.cli.app import app
from tests.simulation.explore import CRASH_POINTS
from tests.simulation.plants import BUGS


def test_the_summary_counts_seeds_violations_faults_and_crash_points() -> None:
    done = CliRunner().invoke(app, ["sim", "--seeds", "20", "--json"])

    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (told["seeds"], told["violations"]) == (20, 0)
    assert set(told["crash_points"]) == set(CRASH_POINTS)
    assert told["faults"]
    assert told["seeds_per_second"] > 0


def test_a_failing_seed_names_the_command_that_repeats_it_in_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    next(bug for bug in BUGS if bug.name == "lose the tick").plant(monkeypatch)

    done = CliRunner().invoke(app, ["sim", "--seeds", "1"])
    again = CliRunner().invoke(app, ["sim", "--seed", "0", "--trace"])

    assert done.exit_code == 1
    assert "again: tallystick sim --seed 0 --trace" in done.stderr
    assert "BROKEN every_commit_ends" in again.stdout
    assert "plan-requests" in again.stdout


def test_without_a_checkout_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops.cli.sim, "find_spec", lambda _name: None)

    done = CliRunner().invoke(app, ["sim"])

    assert done.exit_code == 2
    assert "the simulator is not installed" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
