"""All commands, put together."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from ops.cli import broker, contracts, inspect, receipts, schemas, topics
from ops.cli.commit import commit
from ops.cli.common import EXIT_HELP, out
from ops.cli.demo import demo
from ops.cli.resolve import resolve
from ops.cli.run import dispatch, read, worker
from ops.cli.sim import sim

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
for command in (commit, resolve, demo, worker, dispatch, read, sim):
    app.command(epilog=EXIT_HELP)(command)
app.add_typer(inspect.app, name="inspect")
app.add_typer(receipts.app, name="receipts")
app.add_typer(topics.app, name="topics")
app.add_typer(schemas.app, name="schemas")
app.add_typer(contracts.app, name="contracts")
app.add_typer(broker.app, name="broker")


def _version() -> str:
    """The installed version; in a checkout that is not installed, what pyproject.toml says."""
    try:
        return version("tallystick")
    except PackageNotFoundError:
        text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"tallystick {_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options before the command."""
