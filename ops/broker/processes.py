"""Start, recognise and end processes, so that a stale pid never costs a stranger its life.

A process is named by its pid *and* its start time; the kernel gives a pid to somebody else
after its owner is gone. Signals go through a pidfd where the system has them, which closes the
gap between the check and the signal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

_PROC = Path("/proc")

POLL_S = 0.02
"""Lower burns a core while a broker stops, higher is felt at the end of each test."""

KILL_WAIT_S = 10.0
"""How long SIGKILL may take: a process in the middle of disk I/O dies late, not never."""

_LEASH = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit(1)\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)
"""Ask Linux for SIGKILL when the parent dies (PR_SET_PDEATHSIG = 1), then become the program.

Not a `preexec_fn`: that runs Python between fork and exec, where a lock held by one of
librdkafka's threads would hang the child.
"""

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Our own children, to be reaped: a zombie keeps its pid, and looks alive to others."""


class ProcessRef(msgspec.Struct, frozen=True):
    """A process that cannot be confused with a later one of the same pid."""

    pid: int
    started: str


def started_at(pid: int) -> str | None:
    """When the process behind `pid` started, in the system's own words; None if it is gone."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
        return None
    if _PROC.joinpath("self", "stat").exists():
        return _started_linux(pid)
    return _started_ps(pid)


def _started_linux(pid: int) -> str | None:
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_text(encoding="ascii", errors="replace")
        boot = _PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        return None
    # The command name may hold spaces and brackets, so count from its closing bracket.
    fields = stat.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{boot[:8]}-{ticks}"


def _started_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else " ".join(started.split())


def is_alive(ref: ProcessRef) -> bool:
    """Whether this very process runs; a stopped (SIGSTOP) one counts as alive."""
    return started_at(ref.pid) == ref.started


def spawn(
    argv: Sequence[str], *, log: Path, leashed: bool, env: Mapping[str, str] | None = None
) -> ProcessRef:
    """Start `argv` in its own session with its output appended to `log`.

    `argv[0]` is an absolute path. `leashed`: the process dies with the calling thread's process
    (Linux; elsewhere the owner must stop it); otherwise it outlives its starter.
    """
    command = list(argv)
    if leashed and sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), *argv]
    with log.open("ab") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            # Ctrl-C in a terminal goes to the whole foreground group; the broker must outlast
            # its clients' own clean-up.
            start_new_session=True,
        )
    _children[child.pid] = child
    return ProcessRef(pid=child.pid, started=started_at(child.pid) or "gone")


def send(ref: ProcessRef, number: signal.Signals) -> bool:
    """Send a signal to exactly this process; False if it is gone."""
    if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
        if not is_alive(ref):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(ref.pid, number)
        return True
    try:
        descriptor = os.pidfd_open(ref.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_alive(ref):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def wait_gone(refs: Sequence[ProcessRef], within_s: float) -> bool:
    """Wait until none of the processes runs; False when time is up first."""
    deadline = time.monotonic() + within_s
    while any(is_alive(ref) for ref in refs):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def end(refs: Sequence[ProcessRef], *, grace_s: float) -> None:
    """End the processes: SIGTERM to all at once, and after `grace_s` SIGKILL to the rest."""
    if grace_s > 0:
        for ref in refs:
            send(ref, signal.SIGCONT)  # a paused process cannot hear SIGTERM
            send(ref, signal.SIGTERM)
        if wait_gone(refs, grace_s):
            return
    for ref in refs:
        send(ref, signal.SIGKILL)
    wait_gone(refs, KILL_WAIT_S)


def tail(log: Path, lines_max: int = 5, bytes_max: int = 4096) -> str:
    """The last lines of a log on one line, for an error message."""
    try:
        text = log.read_bytes()[-bytes_max:].decode(errors="replace")
    except OSError:
        return "no log was written"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-lines_max:]) or "the log is empty"
