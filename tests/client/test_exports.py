"""The public names of `tallystick`, frozen: each is a promise to programs that import it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tallystick

PUBLIC = {
    # the client
    *("AsyncTally", "Pending", "Progress", "Tally"),
    # contracts and plans
    *("Contract", "Plan", "build_plan", "parse_contract", "parse_plan", "plan_from"),
    # keys
    *("call_key", "intent_id", "plan_hash"),
    # what comes back
    *("EvidenceKind", "ItemStatus", "PartialReason", "PartialSuccess", "Receipt"),
    # errors
    *("BrokerUnavailable", "CallerError", "CanonicalError", "ContractError", "DriftError"),
    *("ExitCode", "OperatorError", "PlanError", "RefusedError", "TallyError"),
    *("TopicMismatch", "WaitTimeout"),
}

ABOVE = ("ops", "connectors", "streams", "processors")
HEAVY = ("yaml", "rocksdict", "aiohttp", "typer", "rich", "pydantic", "prometheus_client")


def test_the_public_names_are_these() -> None:
    """A new name is added here too; one that is gone is a breaking change in CHANGELOG.md."""
    assert set(tallystick.__all__) == PUBLIC
    assert tallystick.__all__ == sorted(tallystick.__all__)


def test_every_public_name_exists_and_says_what_it_is() -> None:
    for name in PUBLIC:
        assert getattr(tallystick, name).__doc__, name


def test_importing_the_client_imports_nothing_that_only_a_worker_needs() -> None:
    program = (
        "import sys, tallystick\n"
        f"print(*sorted(set({ABOVE + HEAVY!r}) & {{name.split('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == []
