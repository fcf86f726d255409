"""Run the pieces of the pipeline as processes of their own: for the demo, the benchmark, tests.

Each child is stopped by its pid and says on stdout when it is ready. On Linux it dies with the
thread that started it, so start pieces in a thread that lives as long as they should.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tallystick.errors import OperatorError

READY_S = 60.0
"""How long a process may take until it says that it is ready. Lower: a loaded machine fails."""

STOP_S = 15.0
"""How long a process may take to stop after SIGTERM before it is killed."""

READY_WORD = "ready"


class Piece:
    """One running process; its output goes to `log`, its first `ready` line ends `start`."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str]
    ) -> None:
        self.name = name
        self._command = list(command)
        self._log_path = log
        self._env = {**os.environ, **env}
        self._ready = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; raises OperatorError when it was never started."""
        if self._process is None:
            raise OperatorError(f"{self.name} was not started", where=self.name)
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """Processor seconds that it has used so far (Linux; 0.0 elsewhere)."""
        stat = Path(f"/proc/{self.pid}/stat")
        if not stat.exists():
            return 0.0
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def returncode(self) -> int | None:
        """The exit code, or None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> Piece:
        """Start it and return without waiting; `wait_ready` waits."""
        self._ready.clear()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log_path.open("ab"),
            env=self._env,
            process_group=0,  # a terminal's Ctrl-C is for its parent, which ends it in order
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one prctl, no locks taken
        )
        stream = self._process.stdout
        if stream is not None:
            threading.Thread(target=self._drain, args=(stream,), daemon=True).start()
        return self

    def wait_ready(self) -> Piece:
        """Wait until it says that it is ready; raises OperatorError with its last words."""
        waited = 0.0
        while not self._ready.wait(0.05):
            waited += 0.05
            if self.returncode is not None or waited > READY_S:
                raise OperatorError(
                    f"did not become ready (exit code {self.returncode}): {self.last_words()}",
                    where=self.name,
                    fix=f"see {self._log_path}",
                )
        return self

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: SIGKILL for a crash, SIGSTOP and SIGCONT for a stall."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """A crash: no clean-up, no goodbye."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self) -> int | None:
        """Ask it to stop, kill it if it does not; returns its exit code."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return self._process.returncode

    def last_words(self) -> str:
        """The end of its log, on one line."""
        text = self._log_path.read_text(errors="replace") if self._log_path.exists() else ""
        return " | ".join(text.strip().splitlines()[-3:])

    def _drain(self, stream: IO[bytes]) -> None:
        for line in stream:
            if line.decode(errors="replace").startswith(READY_WORD):
                self._ready.set()


class Pieces:
    """Worker, dispatcher and reader of one tenant, started by the command line itself."""

    def __init__(
        self,
        *,
        bootstrap: str,
        prefix: str,
        state_dir: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._base = [sys.executable, "-m", "ops.cli"]
        self._place = ["--bootstrap", bootstrap, "--prefix", prefix]
        self._state_dir = state_dir
        self._env = dict(env or {})
        self._running: list[Piece] = []
        state_dir.mkdir(parents=True, exist_ok=True)

    def worker(self, slot: str = "w0", *extra: str, env: Mapping[str, str] | None = None) -> Piece:
        """A worker of the commits stage; its state lives under this folder, by slot."""
        folder = self._state_dir / slot
        return self._piece(
            slot, ["worker", "--slot", slot, "--state-dir", str(folder), *extra], env
        )

    def dispatcher(
        self, contracts: Sequence[Path], slot: str = "d0", *, env: Mapping[str, str] | None = None
    ) -> Piece:
        """A dispatcher for these contracts."""
        return self._piece(slot, ["dispatch", "--slot", slot, *_named(contracts)], env)

    def reader(
        self, contracts: Sequence[Path], slot: str = "r0", *, env: Mapping[str, str] | None = None
    ) -> Piece:
        """A reader for these contracts."""
        return self._piece(slot, ["read", "--slot", slot, *_named(contracts)], env)

    def stop(self) -> None:
        """Stop whatever still runs, last started first."""
        for piece in reversed(self._running):
            piece.stop()
        self._running.clear()

    def _piece(self, name: str, command: list[str], env: Mapping[str, str] | None) -> Piece:
        piece = Piece(
            name,
            [*self._base, *command, *self._place],
            self._state_dir / f"{name}.log",
            {**self._env, **(env or {})},
        )
        self._running.append(piece)
        return piece


def _named(contracts: Sequence[Path]) -> list[str]:
    return [word for contract in contracts for word in ("--contract", str(contract))]


def _die_with_parent() -> None:
    """Linux only: the kernel sends SIGKILL when the parent is gone, whatever ended it."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
