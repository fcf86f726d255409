"""Choose a kind of broker and start it: by name, or the first of an order that works here.

The order differs by use. Tests and `broker up` want the real thing first; the demo names
`embedded` itself, because it must need nothing but Python.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ops.broker import apache, docker, embedded, external, jars
from ops.broker.kinds import BrokerHandle, BrokerKind, Say, quiet
from tallystick.errors import CallerError, OperatorError

ORDER = (BrokerKind.EXTERNAL, BrokerKind.APACHE, BrokerKind.DOCKER, BrokerKind.EMBEDDED)
"""What tests and `--kind auto` prefer: what somebody set up, then what fences, then the rest."""


def missing(kind: BrokerKind, bootstrap: str = "") -> str:
    """Why this kind cannot run here, in a few words; empty if it can. Starts nothing."""
    if kind is BrokerKind.EXTERNAL:
        return "" if bootstrap else "no bootstrap address is set"
    if kind is BrokerKind.APACHE:
        return jars.missing()
    return docker.missing() if kind is BrokerKind.DOCKER else embedded.missing()


def how_to_get(kind: BrokerKind) -> str:
    """What to do so that this kind can run here."""
    return {
        BrokerKind.EXTERNAL: "set TALLYSTICK_BOOTSTRAP",
        BrokerKind.APACHE: jars.HOW_TO_GET,
        BrokerKind.DOCKER: docker.HOW_TO_GET,
        BrokerKind.EMBEDDED: embedded.HOW_TO_GET,
    }[kind]


def start(
    kind: BrokerKind | str,
    *,
    nodes: int = 1,
    state_dir: Path | None = None,
    bootstrap: str = "",
    survive: bool = False,
    preferred_ports: Sequence[int] = (),
    say: Say = quiet,
) -> BrokerHandle:
    """Start a broker of this kind and return when it takes transactions.

    Without `state_dir` its data goes with the handle; without `survive` it dies with this
    process. Raises OperatorError, with what to install, if it cannot run here; CallerError for
    an unknown kind or a size that it does not have.
    """
    kind = _kind(kind)
    if nodes != 1 and kind in (BrokerKind.EMBEDDED, BrokerKind.DOCKER):
        raise CallerError(f"{kind} has one node", where="--nodes", fix="use --kind apache")
    if kind is BrokerKind.EXTERNAL:
        return external.attach(bootstrap)
    if kind is BrokerKind.DOCKER:
        return docker.start(say=say, survive=survive)
    if kind is BrokerKind.EMBEDDED:
        return embedded.start(
            state_dir=state_dir, survive=survive, preferred_ports=preferred_ports, say=say
        )
    return apache.start(
        nodes, state_dir=state_dir, survive=survive, preferred_ports=preferred_ports, say=say
    )


def start_first(
    order: Sequence[BrokerKind] = ORDER,
    *,
    nodes: int = 1,
    state_dir: Path | None = None,
    bootstrap: str = "",
    survive: bool = False,
    preferred_ports: Sequence[int] = (),
    say: Say = quiet,
) -> BrokerHandle:
    """Start the first kind of `order` that works here; each one passed over is said, with why.

    Raises OperatorError that names every reason when none works.
    """
    reasons: list[str] = []
    for kind in order:
        if kind is BrokerKind.EXTERNAL and not bootstrap:
            continue
        try:
            if nodes > 1 and kind in (BrokerKind.EMBEDDED, BrokerKind.DOCKER):
                continue
            return start(
                kind,
                nodes=nodes,
                state_dir=state_dir,
                bootstrap=bootstrap,
                survive=survive,
                preferred_ports=preferred_ports,
                say=say,
            )
        except OperatorError as error:
            reasons.append(f"{kind}: {error.message}")
            say(f"not {kind}: {error}")
    raise OperatorError(
        f"no broker can run here ({'; '.join(reasons) or 'nothing was tried'})",
        where="broker",
        fix=how_to_get(BrokerKind.APACHE),
    )


def _kind(name: BrokerKind | str) -> BrokerKind:
    try:
        return BrokerKind(name)
    except ValueError as error:
        raise CallerError(
            f"{name!r} is no kind of broker", where="broker", fix=f"use {', '.join(BrokerKind)}"
        ) from error


def bootstrap_setting() -> str:
    """The address that the environment names; empty if none."""
    return os.environ.get("TALLYSTICK_BOOTSTRAP", "")
