"""`tallystick worker`, `dispatch` and `read`: the long-running processes of the pipeline.

What only they need is imported when they start: a quarter of a second that no other command pays.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from connectors.contract_file import load_contract
from connectors.points import Point, Reach
from connectors.settings import ConnectorSettings
from ops.cli.common import Bootstrap, Connection, Prefix, Registry, connection, guarded
from ops.cli.process import log_to_stderr
from ops.processes import READY_WORD
from streams.settings import LoopSettings
from streams.stages import STAGES
from streams.topics_admin import CONTACT_S, open_admin
from tallystick.errors import CallerError, TopicMismatch
from tallystick.topics import Topic, full_name

if TYPE_CHECKING:
    from connectors.dispatcher import Dispatcher
    from connectors.intake import Intake
    from connectors.reader import Reader

Slot = Annotated[
    str,
    typer.Option(
        help="A stable name of this process, unique among its kind (a pod's name, say).",
        envvar="TALLYSTICK_SLOT",
        show_default="host name",
    ),
]
Contracts = Annotated[
    list[Path], typer.Option("--contract", help="A contract file to serve; may be repeated.")
]
SessionTimeout = Annotated[
    int,
    typer.Option(
        "--session-timeout-ms",
        envvar="TALLYSTICK_SESSION_TIMEOUT_MS",
        min=1_000,
        help="How long a silent process keeps its partitions.",
    ),
]


def worker(
    stages: Annotated[
        list[str], typer.Option("--stage", help="A stage to run; may be repeated.")
    ] = list(STAGES),  # noqa: B006 - typer copies it
    slot: Slot = "",
    state_dir: Annotated[
        Path | None, typer.Option(help="Where the rebuildable state lies; one folder a slot.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve Prometheus metrics on this port of 127.0.0.1.")
    ] = None,
    session_timeout_ms: SessionTimeout = 10_000,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
) -> None:
    """Run stages: fold, in Kafka transactions, what agents and targets log.

    Examples:

    ```sh
    tallystick worker --slot worker-0 --state-dir /var/lib/tallystick --metrics-port 9464
    ```
    """

    def action() -> int:
        from ops.metrics import open_metrics
        from streams.worker import Worker

        log_to_stderr()
        place = connection(bootstrap, prefix, registry)
        chosen = [_stage(name) for name in stages]
        _check_ledger(place, *(topic for stage in chosen for topic in stage.inputs))
        name = slot or socket.gethostname()
        settings = LoopSettings(
            bootstrap=place.bootstrap,
            prefix=place.prefix,
            slot=name,
            state_dir=state_dir or place.state_dir / "state" / name,
            kafka=place.config,
            session_timeout_ms=session_timeout_ms,
        )
        metrics = open_metrics(metrics_port, _say_ready)
        return int(Worker(chosen, settings, place.codec(), metrics=metrics).run())

    raise typer.Exit(guarded(action))


def dispatch(
    contract: Contracts,
    slot: Slot = "",
    in_flight_max: Annotated[
        int, typer.Option(min=1, help="Calls at the same time; a contract may ask for fewer.")
    ] = 64,
    session_timeout_ms: SessionTimeout = 10_000,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
) -> None:
    """Call targets: each intent is claimed in the log, then called once.

    Secrets come from the environment variables that the contract names.

    Examples:

    ```sh
    tallystick dispatch --contract cases.yaml --slot dispatch-0
    ```
    """

    from connectors.dispatcher import Dispatcher

    asked = _Asked(contract, slot, in_flight_max, session_timeout_ms)
    place = guarded(lambda: connection(bootstrap, prefix, registry))
    guarded(lambda: _serve(Dispatcher, asked, place, Topic.INTENTS, Topic.ATTEMPTS))


def read(
    contract: Contracts,
    slot: Slot = "",
    in_flight_max: Annotated[int, typer.Option(min=1, help="Reads at the same time.")] = 64,
    session_timeout_ms: SessionTimeout = 10_000,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
) -> None:
    """Read targets back: fresh, and only what the ledger asks for.

    Examples:

    ```sh
    tallystick read --contract cases.yaml --slot read-0
    ```
    """

    from connectors.reader import Reader

    asked = _Asked(contract, slot, in_flight_max, session_timeout_ms)
    place = guarded(lambda: connection(bootstrap, prefix, registry))
    guarded(lambda: _serve(Reader, asked, place, Topic.READBACK_REQUESTS, Topic.READBACKS))


class _Asked(msgspec.Struct, frozen=True):
    """What a connector was asked to do."""

    contracts: list[Path]
    slot: str
    in_flight_max: int
    session_timeout_ms: int


def _serve(
    kind: type[Dispatcher | Reader], asked: _Asked, place: Connection, *topics: Topic
) -> None:
    """Run a dispatcher or reader until a signal; all that can be wrong is said before it joins."""
    from connectors.contract_book import ContractBook

    log_to_stderr()
    contracts = [load_contract(path) for path in asked.contracts]
    settings = _settings(place, asked.slot, asked.in_flight_max, asked.session_timeout_ms)
    codec = place.codec()
    _check_ledger(place, *topics)

    async def start() -> None:
        book = await ContractBook.open(contracts, os.environ, served_by=settings.slot)
        station = kind(settings, book, codec, _reach())
        await _until_signal(station.run, station.intake)

    asyncio.run(start())


def _check_ledger(place: Connection, *topics: Topic) -> None:
    """Fail at once, in one line, where consumers would wait in silence for broker or topics."""
    found = open_admin(place.bootstrap, place.config).list_topics(timeout=CONTACT_S).topics
    for name in (full_name(place.prefix, topic) for topic in topics):
        if name not in found:
            raise TopicMismatch(
                f"topic {name} does not exist",
                where=place.bootstrap,
                fix="run `tallystick topics create`, or correct --prefix",
            )


def _stage(name: str) -> Any:
    if name not in STAGES:
        raise CallerError(
            f"there is no stage {name!r}", where="--stage", fix=f"use one of: {', '.join(STAGES)}"
        )
    return STAGES[name]


def _settings(
    place: Connection, slot: str, in_flight_max: int, session_timeout_ms: int
) -> ConnectorSettings:
    return ConnectorSettings(
        bootstrap=place.bootstrap,
        prefix=place.prefix,
        slot=slot or socket.gethostname(),
        kafka=place.config,
        in_flight_max=in_flight_max,
        session_timeout_ms=session_timeout_ms,
    )


async def _until_signal(
    run: Callable[[asyncio.Event], Coroutine[Any, Any, None]], intake: Intake
) -> None:
    """Run until SIGTERM or SIGINT; says when its group has given it partitions."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    threading.Thread(target=_ready_when_joined, args=(intake,), daemon=True).start()
    await run(stop)


def _ready_when_joined(intake: Intake) -> None:
    intake.joined.wait()
    _say_ready()


def _say_ready() -> None:
    sys.stdout.write(f"{READY_WORD}\n")
    sys.stdout.flush()


def _reach() -> Reach:
    """For failure tests: TALLYSTICK_CRASH=point kills the process there, TALLYSTICK_STOP=point
    stops it (SIGSTOP), once."""
    faults = {
        os.environ.pop(name, ""): number
        for name, number in (
            ("TALLYSTICK_CRASH", signal.SIGKILL),
            ("TALLYSTICK_STOP", signal.SIGSTOP),
        )
    }
    faults.pop("", None)

    def reach(point: Point) -> None:
        number = faults.pop(point.value, None)
        if number is not None:
            os.kill(os.getpid(), number)

    return reach
