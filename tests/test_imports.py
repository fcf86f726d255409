"""The arrows of the house: which room may import what, over every file and shown to fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import arrows
from tests.test_tidy import python_files

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("room", arrows.ROOMS)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    found = [
        complaint
        for path, source in python_files().items()
        if path.startswith(f"{room}/")
        for complaint in arrows.complaints(path, source)
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "reason"),
    [
        ("tallystick/a.py", "import streams.loop", "arrows run"),
        ("tallystick/a.py", "from processors import step", "arrows run"),
        ("tallystick/a.py", "def f():\n    import ops.cli", "arrows run"),
        ("tallystick/a.py", "from ..streams import loop", "arrows run"),
        ("tallystick/a.py", "import importlib\nimportlib.import_module('ops.cli')", "arrows run"),
        ("tallystick/a.py", "import yaml", "the client needs only"),
        ("tallystick/a.py", "import schemas", "is not there"),
        ("tallystick/a.py", "from tests.support import brokers", "is not there"),
        ("processors/a.py", "from streams.loop import StageLoop", "arrows run"),
        ("processors/a.py", "from confluent_kafka import Producer", "a fold has no"),
        ("processors/a.py", "import time", "a fold has no"),
        ("processors/a.py", "import random", "a fold has no"),
        ("processors/a.py", "import uuid", "a fold has no"),
        ("processors/a.py", "import os", "a fold has no"),
        ("processors/a.py", "from pathlib import Path", "a fold has no"),
        ("processors/a.py", "import logging", "a fold has no"),
        ("processors/a.py", "from datetime import datetime", "a fold has no"),
        ("processors/a.py", "import importlib", "a fold has no"),
        ("streams/a.py", "import connectors.targets", "arrows run"),
        ("connectors/a.py", "from ops.cli import main", "arrows run"),
        ("ops/a.py", "import tests.simulation.explore", "is not there"),
        ("ops/cli/sim.py", "import tests.simulation.world", "is not there"),
    ],
)
def test_each_arrow_can_fail(path: str, source: str, reason: str) -> None:
    found = arrows.complaints(path, source)

    assert len(found) == 1, found
    assert reason in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tallystick/a.py", "import json, msgspec, rfc8785\nfrom confluent_kafka import Producer"),
        ("processors/a.py", "import hashlib\nfrom tallystick.records import Plan"),
        ("processors/commits/a.py", "from . import state\nfrom msgspec.structs import replace"),
        ("streams/a.py", "import time, rocksdict\nfrom processors.step import Fold"),
        ("connectors/a.py", "import streams.catalogue, aiohttp"),
        ("ops/a.py", "import connectors, streams, processors, tallystick"),
        ("tests/a.py", "import ops, schemas"),
    ],
)
def test_allowed_imports_pass(path: str, source: str) -> None:
    assert arrows.complaints(path, source) == []


def test_the_client_loads_without_the_rooms_above_it() -> None:
    """What the syntax cannot show: importing the client pulls in none of the others."""
    program = (
        "import sys, tallystick, tallystick.client\n"
        f"print(sorted(set({arrows.ROOMS[:-1]!r}) & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert answer.stdout.strip() == "[]"
