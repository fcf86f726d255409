"""The embedded broker: noida-db, a program inside a wheel; one worker, no generation fencing.

Good for the demo and for tests that need no fencing: it accepts an offset commit of an older
group generation, which Apache Kafka refuses.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState, Node, Say, quiet
from ops.broker.ports import HOST, free_ports
from ops.broker.probe import wait_ready
from ops.broker.processes import ProcessRef, end, is_alive, spawn, tail
from tallystick.errors import BrokerUnavailable, OperatorError

READY_S = 20.0
"""A start takes well under a second; lower fails on a machine under load."""

GRACE_S = 5.0
"""It saves its data on SIGTERM; lower could cut that off."""

STARTS_MAX = 3
"""Starts with a new port after another process was quicker to bind ours."""

PickPorts = Callable[[int, Sequence[int]], list[int]]

HOW_TO_GET = "pip install 'tallystick[embedded]'"


class EmbeddedBroker(BrokerHandle):
    """One noida-db process."""

    def __init__(self, state: BrokerState, *, throw_away: bool) -> None:
        self._state = state
        self._throw_away = throw_away

    @property
    def state(self) -> BrokerState:
        """What runs now."""
        return self._state

    def stop(self) -> None:
        """End it; data made for this handle alone is removed."""
        refs = [node.process for node in self._state.nodes]
        end(refs, grace_s=0 if self._throw_away else GRACE_S)
        if self._throw_away:
            shutil.rmtree(self._state.state_dir, ignore_errors=True)


def missing() -> str:
    """Why it cannot run here, in a few words; empty if it can."""
    return "" if _program() else "noida-db is not installed"


def start(
    *,
    state_dir: Path | None = None,
    survive: bool = False,
    preferred_ports: Sequence[int] = (),
    say: Say = quiet,
    pick_ports: PickPorts = free_ports,
) -> EmbeddedBroker:
    """Start it on a free port; folders and lifetime as in `apache.start`."""
    program = _program()
    if program is None:
        raise OperatorError(
            "noida-db is not installed", where="embedded", fix=f"{HOW_TO_GET}, or use another kind"
        )
    if not program.stat().st_mode & 0o100:
        program.chmod(0o755)  # wheels do not carry the execute bit
    home = state_dir or Path(tempfile.mkdtemp(prefix="tallystick-embedded-"))
    home.mkdir(parents=True, exist_ok=True)
    throw_away = state_dir is None
    try:
        state = _start_at(program, home, preferred_ports, survive, pick_ports, say)
    except BaseException:
        if throw_away:
            shutil.rmtree(home, ignore_errors=True)
        raise
    broker = EmbeddedBroker(state, throw_away=throw_away)
    if not survive:
        atexit.register(broker.stop)
    return broker


def _start_at(
    program: Path,
    home: Path,
    preferred_ports: Sequence[int],
    survive: bool,
    pick_ports: PickPorts,
    say: Say,
) -> BrokerState:
    """Start it, with another port when it ends or stays silent on the first."""
    for attempt in range(1, STARTS_MAX + 1):
        (port,) = pick_ports(1, preferred_ports if attempt == 1 else ())
        say(f"starting the embedded broker (noida-db {_version()})")
        ref = _launch(program, home, port, leashed=not survive)
        try:
            _wait(ref, home, port)
        except BaseException as error:
            end([ref], grace_s=0)
            if attempt < STARTS_MAX and isinstance(error, BrokerUnavailable):
                continue
            raise
        return _describe(home, port, ref)
    raise BrokerUnavailable("did not start", where="embedded")


def _describe(home: Path, port: int, ref: ProcessRef) -> BrokerState:
    return BrokerState(
        kind=BrokerKind.EMBEDDED,
        bootstrap=f"{HOST}:{port}",
        version=_version(),
        state_dir=str(home),
        nodes=(Node(1, port, 0, ref),),
    )


def _launch(program: Path, home: Path, port: int, *, leashed: bool) -> ProcessRef:
    flags = ["--only", "kafka", "--kafka-port", str(port), "--host", HOST]
    command = [str(program), "start", *flags, "--data-dir", str(home / "data")]
    return spawn(command, log=home / "broker.log", leashed=leashed)


def _wait(ref: ProcessRef, home: Path, port: int) -> None:
    def still_alive() -> None:
        if not is_alive(ref):
            raise BrokerUnavailable(
                f"ended while starting: {tail(home / 'broker.log')}", where=str(home)
            )

    wait_ready(f"{HOST}:{port}", brokers=1, within_s=READY_S, still_alive=still_alive)


def _program() -> Path | None:
    """The program inside the wheel; run directly, so that its pid is the broker's own."""
    spec = importlib.util.find_spec("noida_db")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "noida-db"
    return program if program.is_file() else None


def _version() -> str:
    try:
        return metadata.version("noida-db")
    except metadata.PackageNotFoundError:
        return "unknown"
