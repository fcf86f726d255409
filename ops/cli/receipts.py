"""`tallystick receipts tail`: receipts and partial records as they are issued."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.cli.common import (
    EXIT_HELP,
    Bootstrap,
    Json,
    Prefix,
    connection,
    guarded,
    out,
    print_json,
)
from ops.cli.endings import show
from streams.scan import LogReader
from tallystick.codec import FingerprintCodec
from tallystick.records import PartialSuccess, Receipt
from tallystick.topics import Topic

app = typer.Typer(no_args_is_help=True, help="Follow what was proven.")

POLL_S = 0.5
"""How long to wait for a record before looking at the limit; a record ends it at once."""


@app.command("tail", epilog=EXIT_HELP)
def tail(
    beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest record.")
    ] = False,
    partials: Annotated[
        bool, typer.Option("--partials", help="Follow partial records instead of receipts.")
    ] = False,
    count: Annotated[
        int | None, typer.Option("-n", "--count", min=1, help="Stop after this many records.")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    as_json: Json = False,
) -> None:
    """Print every receipt as it is issued; Ctrl-C ends it.

    Examples: tallystick receipts tail --json | jq .commit_key

    tallystick receipts tail --from-beginning -n 10
    """

    def action() -> None:
        place = connection(bootstrap, prefix)
        reader = LogReader(place.bootstrap, place.prefix, FingerprintCodec(), place.config)
        topic = Topic.PARTIALS if partials else Topic.RECEIPTS
        left = count
        try:
            for entry in reader.follow(topic, from_beginning=beginning, poll_s=POLL_S):
                if entry is None or not isinstance(entry.record, Receipt | PartialSuccess):
                    continue
                if as_json:
                    print_json(entry.record)
                else:
                    out.print(f"[bold]{entry.key}[/]", end=" ")
                    show(entry.record)
                left = None if left is None else left - 1
                if left == 0:
                    return
        finally:
            reader.close()

    guarded(action, as_json=as_json)
