"""The tests' own broker: shared by workers, started once, gone with the session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ops.broker import choose, embedded
from ops.broker.kinds import BrokerHandle, BrokerKind
from ops.broker.probe import brokers_at
from tests.support.brokers import plan_line, why_no_apache

ROOT = Path(__file__).parents[2]
needs_embedded = pytest.mark.skipif(embedded.missing() != "", reason=embedded.missing())

SAMPLE = textwrap.dedent(
    """
    import os, pathlib, pytest, time
    from tests.conftest import *

    OUT = pathlib.Path(os.environ["OUT"])

    @pytest.mark.parametrize("n", range(4))
    def test_uses(broker, prefix, n):
        (OUT / f"{os.getpid()}-{n}").write_text(broker.bootstrap)
        time.sleep(float(os.environ.get("HOLD", "0")))

    @pytest.mark.fencing
    def test_fences(broker):
        (OUT / "fenced").touch()
    """
)


def session(tmp_path: Path, *words: str, **env: str) -> subprocess.Popen[str]:
    """A pytest session of its own over SAMPLE, with this project's conftest."""
    (tmp_path / "out").mkdir()
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_sample.py").write_text(SAMPLE.replace("from tests.conftest import *\n", ""))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = fencing\n")
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", str(folder), *words],
        cwd=ROOT,
        # A killed session cannot tidy up: its temporary folders go where pytest's own go.
        env={
            **os.environ,
            "OUT": str(tmp_path / "out"),
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(folder),
            **env,
        },
        stdout=subprocess.PIPE,
        text=True,
    )


@needs_embedded
@pytest.mark.parametrize("workers", ["0", "3"])
def test_all_workers_share_one_broker_that_ends_with_the_session(
    tmp_path: Path, workers: str
) -> None:
    with session(tmp_path, "-n", workers, TALLYSTICK_BROKER="embedded") as pytest_run:
        output, _ = pytest_run.communicate()
    addresses = {path.read_text() for path in (tmp_path / "out").iterdir()}

    assert pytest_run.returncode == 0, output
    assert "4 passed, 1 skipped" in output
    assert "the embedded one accepts it" in output
    assert len(addresses) == 1
    assert f"at {min(addresses)}" in output
    assert brokers_at(addresses.pop(), 0.5) == 0


@needs_embedded
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the children of the dead")
def test_a_killed_session_leaves_no_broker(tmp_path: Path) -> None:
    with session(tmp_path, "-n", "0", TALLYSTICK_BROKER="embedded", HOLD="60") as pytest_run:
        deadline = time.monotonic() + 60
        while not (found := list((tmp_path / "out").iterdir())) or not found[0].read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        address = found[0].read_text()
        assert brokers_at(address, 5) == 1
        os.kill(pytest_run.pid, signal.SIGKILL)

    deadline = time.monotonic() + 10
    while brokers_at(address, 0.2):
        assert time.monotonic() < deadline


def test_the_plan_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan_line({"TALLYSTICK_TEST_BOOTSTRAP": "b:1"}).startswith("broker: external b:1")
    assert plan_line({"TALLYSTICK_BROKER": "embedded"}).startswith("broker: embedded")

    reasons = {BrokerKind.EXTERNAL: "x", BrokerKind.APACHE: "java is not on PATH"}
    reasons |= {BrokerKind.DOCKER: "x"}
    monkeypatch.setattr(choose, "missing", lambda kind: reasons.get(kind, ""))
    line = plan_line({})
    assert line.startswith("broker: embedded; exactly-once tests need Apache Kafka")
    assert "java is not on PATH" in line
    assert "apt-get install" in line
    assert "\n" not in line


def test_an_unknown_kind_fails_the_tests_that_need_a_broker_and_hangs_nothing(
    tmp_path: Path,
) -> None:
    with session(tmp_path, "-n", "2", TALLYSTICK_BROKER="rabbit") as pytest_run:
        output, _ = pytest_run.communicate(timeout=60)

    assert pytest_run.returncode == 1
    assert "'rabbit' is no kind of broker" in output
    assert "5 errors" in output


def test_embedded_alone_asks_for_no_apache() -> None:
    assert "asks for no Apache Kafka" in why_no_apache({"TALLYSTICK_BROKER": "embedded"})


@pytest.mark.broker
def test_the_shared_broker_answers(broker: BrokerHandle) -> None:
    assert brokers_at(broker.bootstrap) >= 1
