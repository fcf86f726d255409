"""`tallystick broker up|down|status`: a broker for development on this machine."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ops.broker import service
from ops.broker.choose import bootstrap_setting
from ops.broker.kinds import BrokerKind, BrokerState
from ops.cli.common import EXIT_HELP, Json, err, guarded, out, print_json
from tallystick.errors import ExitCode

app = typer.Typer(
    no_args_is_help=True, help="Start and stop a broker for development.", epilog=EXIT_HELP
)


class Kind(StrEnum):
    """The kinds of broker, and the choice between them."""

    AUTO = "auto"
    EXTERNAL = BrokerKind.EXTERNAL.value
    APACHE = BrokerKind.APACHE.value
    DOCKER = BrokerKind.DOCKER.value
    EMBEDDED = BrokerKind.EMBEDDED.value


StateDir = Annotated[
    Path,
    typer.Option(
        "--state-dir",
        envvar="TALLYSTICK_BROKER_DIR",
        help="Where its data, logs and process ids lie.",
    ),
]
Address = Annotated[
    str,
    typer.Option("--bootstrap", "-b", help="Address of a broker that somebody else runs."),
]
DEFAULT_DIR = Path(".tallystick/broker")


def _say(line: str) -> None:
    err.print(line, markup=False, style="dim")


@app.command(epilog=EXIT_HELP)
def up(
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="auto takes the first that works: external (TALLYSTICK_BOOTSTRAP), apache "
            "(needs Java 17 and Maven), docker, embedded.",
        ),
    ] = Kind.AUTO,
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, max=3, help="1, or 3 with replication (apache only).")
    ] = 1,
    bootstrap: Address = "",
    state_dir: StateDir = DEFAULT_DIR,
    as_json: Json = False,
) -> None:
    """Start a broker that keeps running; one that runs already is used as it is.

    Its address goes to stdout as a line for the shell, progress to stderr.

    Examples:

    ```sh
    eval "$(tallystick broker up)"
    tallystick broker up --kind apache --nodes 3
    ```
    """
    began = time.monotonic()
    named = None if kind is Kind.AUTO else BrokerKind(kind.value)
    state, fresh = guarded(
        lambda: service.up(named, state_dir, nodes=nodes, bootstrap=bootstrap, say=_say),
        as_json=as_json,
    )
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        print_json({**_facts(state), "started": fresh, "seconds": seconds})
        return
    _say(f"{state.kind} {state.version} {f'up in {seconds} s' if fresh else 'is up already'}")
    out.print(f"export TALLYSTICK_BOOTSTRAP={state.bootstrap}", markup=False)


@app.command(epilog=EXIT_HELP)
def down(
    wipe: Annotated[bool, typer.Option("--wipe", help="Remove its data as well.")] = False,
    state_dir: StateDir = DEFAULT_DIR,
    as_json: Json = False,
) -> None:
    """Stop the broker that `up` started; its data stays unless --wipe is given.

    Examples:

    ```sh
    tallystick broker down
    tallystick broker down --wipe
    ```
    """
    ended = guarded(lambda: service.down(state_dir, wipe=wipe, say=_say), as_json=as_json)
    if as_json:
        print_json({"stopped": ended is not None, **(_facts(ended) if ended else {})})
    elif ended is None:
        out.print("no broker was running here")
    else:
        out.print(f"{ended.kind} at {ended.bootstrap} is down", markup=False)


@app.command(epilog=EXIT_HELP)
def status(
    bootstrap: Address = "",
    state_dir: StateDir = DEFAULT_DIR,
    as_json: Json = False,
) -> None:
    """Say which broker runs here and whether it answers; exit code 1 if none does.

    Examples:

    ```sh
    tallystick broker status
    tallystick broker status --json | jq -r .bootstrap
    ```
    """
    found = guarded(
        lambda: service.status(state_dir, bootstrap or bootstrap_setting()), as_json=as_json
    )
    if as_json:
        print_json(found)
    else:
        out.print(f"kind       {found.kind or 'none'}", markup=False)
        out.print(f"bootstrap  {found.bootstrap or '-'}", markup=False)
        out.print(f"version    {found.version or '-'}", markup=False)
        out.print(f"alive      {'yes' if found.alive else 'no'}{_of_nodes(found)}", markup=False)
        out.print(f"answers    {'yes' if found.answers else 'no'}", markup=False)
        if found.note:
            err.print(found.note, markup=False)
    if not found.answers:
        raise typer.Exit(ExitCode.FAILED)


def _of_nodes(found: service.Status) -> str:
    return f" ({found.nodes_alive} of {found.nodes} nodes)" if found.nodes > 1 else ""


def _facts(state: BrokerState) -> dict[str, object]:
    return {
        "kind": state.kind,
        "bootstrap": state.bootstrap,
        "version": state.version,
        "nodes": max(len(state.nodes), 1),
        "state_dir": state.state_dir,
    }
