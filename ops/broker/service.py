"""`up`, `down` and `status` as functions: a broker that outlives the command that started it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ops.broker import choose, docker, state
from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState, Say, quiet
from ops.broker.probe import brokers_at
from ops.broker.processes import end, is_alive
from tallystick.errors import OperatorError

STOP_S = 15.0
"""A clean stop flushes logs; after this the rest is killed, which only makes a start slower."""

STATUS_S = 2.0
"""How long `status` waits for an answer; lower calls a busy broker dead."""

DEFAULT_PORT = 9092
"""Taken when it is free, because every command asks there when nothing else is set."""


class Status(msgspec.Struct, frozen=True):
    """What `tallystick broker status` says; `alive` is the process, `answers` is Kafka."""

    kind: BrokerKind | None
    bootstrap: str
    version: str
    alive: bool
    answers: bool
    nodes: int
    nodes_alive: int
    state_dir: str
    note: str = ""


def up(
    kind: BrokerKind | None,
    state_dir: Path,
    *,
    nodes: int = 1,
    bootstrap: str = "",
    say: Say = quiet,
) -> tuple[BrokerState, bool]:
    """Start a broker (None: the first kind that works) and remember it in `state_dir`.

    Returns its state and whether it was started now. One that runs already is returned as it
    is; raises OperatorError if that is another kind or size than the one asked for.
    """
    with state.locked(state_dir):
        found = state.load(state_dir)
        if found is not None and _alive(found):
            _check_same(found, kind, nodes, state_dir)
            return found, False
        if found is not None:
            say("the broker of the last `up` is gone; its state file is replaced")
        home = _home(state_dir)
        handle = _start(kind, home, nodes, bootstrap, _ports_before(found), say)
        try:
            state.save(state_dir, handle.state)
        except BaseException:
            handle.stop()
            raise
        return handle.state, True


def down(state_dir: Path, *, wipe: bool = False, say: Say = quiet) -> BrokerState | None:
    """End the broker that `up` started here; None if there was none that runs.

    A process that only has the remembered pid is a stranger and is left alone. An external
    broker is forgotten, not ended. `wipe` removes the data as well.
    """
    with state.locked(state_dir):
        found = state.load(state_dir)
        ended = found if found is not None and _alive(found) else None
        if ended is not None:
            say(f"stopping {ended.kind} at {ended.bootstrap}")
            if ended.container:
                docker.remove(ended.container)
            end([node.process for node in ended.nodes], grace_s=STOP_S)
        elif found is not None:
            say("the broker of the last `up` is gone already; forgetting it")
        state.forget(state_dir)
        if wipe:
            shutil.rmtree(_home(state_dir), ignore_errors=True)
        return ended


def status(state_dir: Path, bootstrap: str = "") -> Status:
    """What runs here, or at `bootstrap` when nothing was started here."""
    found = state.load(state_dir)
    if found is None:
        answers = bool(bootstrap) and brokers_at(bootstrap, STATUS_S) > 0
        return Status(
            kind=BrokerKind.EXTERNAL if bootstrap else None,
            bootstrap=bootstrap,
            version="unknown" if answers else "",
            alive=answers,
            answers=answers,
            nodes=0,
            nodes_alive=0,
            state_dir=str(state_dir),
            note="" if answers else "no broker was started here",
        )
    alive = _alive(found)
    answers = alive and brokers_at(found.bootstrap, STATUS_S) > 0
    living = sum(is_alive(node.process) for node in found.nodes)
    return Status(
        kind=found.kind,
        bootstrap=found.bootstrap,
        version=found.version,
        alive=alive,
        answers=answers,
        nodes=len(found.nodes),
        nodes_alive=living,
        state_dir=str(state_dir),
        note="" if answers else _why_not(alive),
    )


def _why_not(alive: bool) -> str:
    return "the process runs but does not answer" if alive else "it is gone: the state is stale"


def _start(
    kind: BrokerKind | None,
    home: Path,
    nodes: int,
    bootstrap: str,
    preferred_ports: Sequence[int],
    say: Say,
) -> BrokerHandle:
    if kind is None and bootstrap:
        kind = BrokerKind.EXTERNAL  # an address given by hand is meant, or is an error
    if kind is not None:
        return choose.start(
            kind,
            nodes=nodes,
            state_dir=home / kind,
            bootstrap=bootstrap or choose.bootstrap_setting(),
            survive=True,
            preferred_ports=preferred_ports,
            say=say,
        )
    return choose.start_first(
        nodes=nodes,
        state_dir=home,
        bootstrap=choose.bootstrap_setting(),
        survive=True,
        preferred_ports=preferred_ports,
        say=say,
    )


def _home(state_dir: Path) -> Path:
    return state_dir / "data"


def _ports_before(found: BrokerState | None) -> list[int]:
    if found is None or not found.nodes:
        return [DEFAULT_PORT]
    return [
        *(node.port for node in found.nodes),
        *(node.controller_port for node in found.nodes if node.controller_port),
    ]


def _alive(found: BrokerState) -> bool:
    if found.kind is BrokerKind.EXTERNAL:
        return True  # not ours to judge: it is whatever answers there
    return docker.is_running(found.container) if found.container else state.runs(found)


def _check_same(found: BrokerState, kind: BrokerKind | None, nodes: int, state_dir: Path) -> None:
    same_size = not found.nodes or len(found.nodes) == nodes
    if kind in (None, found.kind) and same_size:
        return
    raise OperatorError(
        f"another broker runs here: {found.kind} at {found.bootstrap}",
        where=str(state_dir),
        fix="stop it with `tallystick broker down`, or give --state-dir another folder",
    )
