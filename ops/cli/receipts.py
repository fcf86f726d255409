"""`tallystick receipts tail`: receipts and partial records as they are issued."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.cli.common import (
    EXIT_HELP,
    Bootstrap,
    Json,
    Prefix,
    Registry,
    connection,
    err,
    guarded,
    out,
    print_json,
)
from ops.cli.endings import as_fields, show, words
from streams.scan import LogReader
from tallystick.errors import ExitCode
from tallystick.records import PartialSuccess, Receipt
from tallystick.topics import Topic

app = typer.Typer(no_args_is_help=True, help="Follow what was proven.", epilog=EXIT_HELP)

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
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """Print every receipt as it is issued; Ctrl-C ends it.

    Examples:

    ```sh
    tallystick receipts tail --json | jq .commit_key
    tallystick receipts tail --from-beginning -n 10
    ```
    """

    def action() -> None:
        place = connection(bootstrap, prefix, registry)
        reader = LogReader(place.bootstrap, place.prefix, place.codec(), place.config)
        topic = Topic.PARTIALS if partials else Topic.RECEIPTS
        left = count
        try:
            for entry in reader.follow(topic, from_beginning=beginning, poll_s=POLL_S):
                if entry is None:
                    continue
                if not isinstance(entry.record, Receipt | PartialSuccess):
                    place_in_log = f"{entry.topic}[{entry.partition}] at {entry.offset}"
                    err.print(f"passed over what cannot be read: {place_in_log}", markup=False)
                    continue
                if as_json:
                    print_json(as_fields(entry.record))
                else:
                    out.print(f"[bold]{words(entry.key)}[/]", end=" ")
                    show(entry.record)
                left = None if left is None else left - 1
                if left == 0:
                    return
        finally:
            reader.close()

    try:
        guarded(action, as_json=as_json)
    except KeyboardInterrupt:  # the usual end; one more JSON object would be no receipt
        raise typer.Exit(ExitCode.ABORTED) from None
