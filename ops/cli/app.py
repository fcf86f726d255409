"""All commands, put together."""

from __future__ import annotations

import typer

from ops.cli import broker, contracts, inspect, receipts, schemas, topics
from ops.cli.commit import HELP as COMMIT_HELP
from ops.cli.commit import commit
from ops.cli.common import EXIT_HELP
from ops.cli.demo import demo
from ops.cli.resolve import resolve
from ops.cli.run import dispatch, read, worker

app = typer.Typer(
    name="tallystick",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="An effect ledger for AI agents on Apache Kafka: a receipt only where plan and world "
    "agree.",
    epilog=EXIT_HELP,
)
app.command(help=COMMIT_HELP)(commit)
app.command()(resolve)
app.command()(demo)
app.command()(worker)
app.command()(dispatch)
app.command()(read)
app.add_typer(inspect.app, name="inspect")
app.add_typer(receipts.app, name="receipts")
app.add_typer(topics.app, name="topics")
app.add_typer(schemas.app, name="schemas")
app.add_typer(contracts.app, name="contracts")
app.add_typer(broker.app, name="broker")
