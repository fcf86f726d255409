"""`tallystick worker`, `dispatch` and `read`: the long-running processes of the pipeline."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.contract_book import ContractBook
from connectors.contract_file import load_contract
from connectors.dispatcher import Dispatcher
from connectors.intake import Intake
from connectors.points import Point, Reach
from connectors.reader import Reader
from connectors.settings import ConnectorSettings
from ops.cli.common import EXIT_HELP, Bootstrap, Connection, Prefix, connection, err, guarded
from ops.metrics import open_metrics
from ops.processes import READY_WORD
from streams.settings import LoopSettings
from streams.stages import STAGES
from streams.worker import Worker
from tallystick.codec import FingerprintCodec
from tallystick.errors import CallerError

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
) -> None:
    """Run stages: fold, in Kafka transactions, what agents and targets log.

    Example: tallystick worker --slot worker-0 --state-dir /var/lib/tallystick
    """

    def action() -> int:
        place = connection(bootstrap, prefix)
        chosen = [_stage(name) for name in stages]
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
        return int(Worker(chosen, settings, FingerprintCodec(), metrics=metrics).run())

    _log_to_stderr()
    code = guarded(action)
    raise typer.Exit(code)


def dispatch(
    contract: Contracts,
    slot: Slot = "",
    in_flight_max: Annotated[
        int, typer.Option(min=1, help="Calls at the same time; a contract may ask for fewer.")
    ] = 64,
    session_timeout_ms: SessionTimeout = 10_000,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
) -> None:
    """Call targets: each intent is claimed in the log, then called once.

    Secrets come from the environment variables that the contract names.

    Example: tallystick dispatch --contract cases.yaml --slot dispatch-0
    """

    def action() -> None:
        contracts = [load_contract(path) for path in contract]
        settings = _settings(connection(bootstrap, prefix), slot, in_flight_max, session_timeout_ms)

        async def start() -> None:
            book = ContractBook(contracts, os.environ, served_by=settings.slot)
            dispatcher = Dispatcher(settings, book, FingerprintCodec(), _reach())
            await _until_signal(dispatcher.run, dispatcher.intake)

        asyncio.run(start())

    _log_to_stderr()
    guarded(action)


def read(
    contract: Contracts,
    slot: Slot = "",
    in_flight_max: Annotated[int, typer.Option(min=1, help="Reads at the same time.")] = 64,
    session_timeout_ms: SessionTimeout = 10_000,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
) -> None:
    """Read targets back: fresh, and only what the ledger asks for.

    Example: tallystick read --contract cases.yaml --slot read-0
    """

    def action() -> None:
        contracts = [load_contract(path) for path in contract]
        settings = _settings(connection(bootstrap, prefix), slot, in_flight_max, session_timeout_ms)

        async def start() -> None:
            book = ContractBook(contracts, os.environ, served_by=settings.slot)
            reader = Reader(settings, book, FingerprintCodec(), _reach())
            await _until_signal(reader.run, reader.intake)

        asyncio.run(start())

    _log_to_stderr()
    guarded(action)


for _command in (worker, dispatch, read):
    _command.__doc__ = f"{_command.__doc__}\n\n    {EXIT_HELP}\n"


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


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=err.file,
        level=os.environ.get("TALLYSTICK_LOG", "WARNING").upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
