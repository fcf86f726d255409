"""Processes are recognised by pid and start time, and die with their owner when leashed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ops.broker.processes import ProcessRef, end, is_alive, send, spawn, started_at, tail

SLEEP = shutil.which("sleep") or "/bin/sleep"


def test_a_stale_pid_never_kills_a_stranger(tmp_path: Path) -> None:
    stranger = spawn([SLEEP, "60"], log=tmp_path / "log", leashed=True)
    stale = ProcessRef(pid=stranger.pid, started="an older process of this pid")

    end([stale], grace_s=0.1)

    assert not is_alive(stale)
    assert not send(stale, signal.SIGKILL)
    assert is_alive(stranger)
    end([stranger], grace_s=0)
    assert not is_alive(stranger)


def test_a_finished_child_is_not_alive(tmp_path: Path) -> None:
    ref = spawn([SLEEP, "0"], log=tmp_path / "log", leashed=False)

    assert eventually(lambda: not is_alive(ref))
    assert started_at(ref.pid) is None


def test_a_paused_process_is_alive_and_still_ends(tmp_path: Path) -> None:
    ref = spawn([SLEEP, "60"], log=tmp_path / "log", leashed=True)
    send(ref, signal.SIGSTOP)

    assert is_alive(ref)

    end([ref], grace_s=5)
    assert not is_alive(ref)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the children of the dead")
@pytest.mark.parametrize(("leashed", "survives"), [(True, False), (False, True)])
def test_a_leashed_process_dies_with_its_killed_owner(
    tmp_path: Path, leashed: bool, survives: bool
) -> None:
    program = (
        "import sys, time, msgspec; from pathlib import Path\n"
        "from ops.broker.processes import spawn\n"
        f"ref = spawn([{SLEEP!r}, '60'], log=Path(sys.argv[1]), leashed={leashed})\n"
        # Wait until the leash has turned into the program itself.
        "comm = Path(f'/proc/{ref.pid}/comm')\n"
        "while comm.read_text().strip() != 'sleep': time.sleep(0.01)\n"
        "print(msgspec.json.encode(ref).decode(), flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with owner:
        assert owner.stdout is not None
        ref = msgspec.json.decode(owner.stdout.readline(), type=ProcessRef)
        assert is_alive(ref)
        os.kill(owner.pid, signal.SIGKILL)

    if survives:
        assert is_alive(ref)
        os.kill(ref.pid, signal.SIGKILL)
    assert eventually(lambda: not is_alive(ref))


def test_the_tail_of_a_log_is_one_bounded_line(tmp_path: Path) -> None:
    log = tmp_path / "log"

    assert tail(log) == "no log was written"
    log.write_text("")
    assert tail(log) == "the log is empty"
    log.write_text("".join(f"line {number}\n\n" for number in range(9000)))
    assert tail(log, lines_max=2) == "line 8998 | line 8999"


def eventually(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Whether it holds before the time is up."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
