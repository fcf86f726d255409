"""The state file: how `down` and `status`, in another process, find what `up` started."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ops.broker.kinds import BrokerState
from ops.broker.processes import is_alive
from tallystick.errors import OperatorError, StateLocked

STATE_FILE = "broker.json"
LOCK_FILE = "broker.lock"


def save(state_dir: Path, state: BrokerState) -> None:
    """Write the state file whole or not at all."""
    state_dir.mkdir(parents=True, exist_ok=True)
    fresh = state_dir / f"{STATE_FILE}.{os.getpid()}"
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(state)) + b"\n")
    fresh.replace(state_dir / STATE_FILE)


def load(state_dir: Path) -> BrokerState | None:
    """What the state file says, None without one; raises OperatorError if it is damaged."""
    path = state_dir / STATE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=BrokerState)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise OperatorError(
            f"the state file cannot be read: {error}",
            where=str(path),
            fix="stop the broker by hand if one runs, then delete the file",
        ) from error


def forget(state_dir: Path) -> None:
    """Remove the state file."""
    (state_dir / STATE_FILE).unlink(missing_ok=True)


def runs(state: BrokerState) -> bool:
    """Whether a process of this state is still the one that was started; kills nothing."""
    return any(is_alive(node.process) for node in state.nodes)


@contextlib.contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Hold the state folder; raises StateLocked if another `up` or `down` holds it."""
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / LOCK_FILE).open("ab") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateLocked(
                "another command is starting or stopping this broker",
                where=str(state_dir),
                fix="wait for it, or give --state-dir another folder",
            ) from error
        yield
