"""Run the demo target in its own process: `python -m ops.demo.target --port 0 --print-port`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

import msgspec
from aiohttp import web

from ops.demo.target_faults import Fault
from ops.demo.target_http import Service, Settings
from ops.demo.target_store import Store


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to stop; prints the port where asked to."""
    options = _parser().parse_args(argv)
    settings = Settings(
        keys=not options.no_keys,
        unique=options.unique,
        page_size=options.page_size,
        latency_ms=options.latency_ms,
        lag_ms=options.lag_ms,
        token=options.token,
    )
    try:
        faults = [msgspec.json.decode(text, type=Fault) for text in options.fault]
    except msgspec.MsgspecError as error:
        print(f"error: --fault: {error} (write JSON such as " + '{"kind":"ack_lost"})')
        return 2
    service = Service(Store(options.db), settings)
    for fault in faults:
        service.faults.add(fault)
    asyncio.run(_serve(service, options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ops.demo.target", description="The demo target.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--db", default=":memory:", help="SQLite file")
    parser.add_argument("--print-port", action="store_true", help="print the port on one line")
    parser.add_argument("--no-keys", action="store_true", help="ignore idempotency keys")
    parser.add_argument("--unique", action="store_true", help="409 for a case that exists")
    parser.add_argument("--page-size", type=int, help="page listings by links")
    parser.add_argument("--latency-ms", type=int, default=0, help="before every answer")
    parser.add_argument("--lag-ms", type=int, default=0, help="rows are readable this much later")
    parser.add_argument("--token", help="ask for this bearer token")
    parser.add_argument("--fault", action="append", default=[], help="a fault switch, as JSON")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end with the process that started it"
    )
    return parser


async def _serve(service: Service, options: argparse.Namespace) -> None:
    # A client that goes away ends its handler; late commits are tasks of their own and go on.
    runner = web.AppRunner(service.app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", options.port, backlog=1_024, shutdown_timeout=0.1)
    await site.start()
    if options.print_port:
        print(runner.addresses[0][1], flush=True)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if options.until_stdin_closes:
        # Only the parent holds the other end, so even a killed one leaves no orphan behind.
        loop.add_reader(sys.stdin.fileno(), stop.set)
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
