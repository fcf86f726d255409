"""`tallystick topics`: create the catalogue's topics, show them, and name what differs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Column, Table

from ops.cli.common import (
    EXIT_HELP,
    Bootstrap,
    Json,
    Prefix,
    connection,
    err,
    guarded,
    out,
    print_json,
)
from streams.catalogue import PARTITIONS, as_markdown
from streams.topics_admin import (
    ActualTopic,
    Created,
    Difference,
    create,
    describe,
    diff,
    open_admin,
)
from tallystick.errors import ExitCode

app = typer.Typer(
    name="topics",
    help="The ledger's topics on a broker, held against the catalogue.",
    epilog=EXIT_HELP,
    no_args_is_help=True,
)

SHOWN = ("retention.ms", "max.message.bytes")
"""Settings with a column of their own; `--json` has them all."""

Partitions = Annotated[
    int, typer.Option(min=1, max=1_000, metavar="N", help="Partitions of every topic.")
]
AnyPartitions = Annotated[
    int | None,
    typer.Option(
        min=1, max=1_000, metavar="N", help="Expect this many; otherwise only equal counts."
    ),
]
Replication = Annotated[
    int | None,
    typer.Option(
        min=1, max=9, metavar="R", help="Copies of every partition; as many as fit, at most 3."
    ),
]


@app.command("create", epilog=EXIT_HELP)
def create_topics(
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    partitions: Partitions = PARTITIONS,
    replication: Replication = None,
    as_json: Json = False,
) -> None:
    """Create the topics that are missing; those that exist stay as they are.

    Examples:

    ```sh
    tallystick topics create
    tallystick topics create --bootstrap kafka:9092 --prefix acme.tally. --partitions 24
    ```
    """

    def action() -> tuple[list[Created], list[Difference]]:
        place = connection(bootstrap, prefix)
        admin = open_admin(place.bootstrap, place.config)
        with err.status(f"creating topics under {place.prefix}"):
            made = create(admin, place.prefix, partitions=partitions, replication=replication)
        old = {row.name for row in made if not row.fresh}
        if not old:
            return made, []
        found = diff(admin, place.prefix, partitions=partitions, replication=replication)
        return made, [row for row in found if row.name in old]

    made, differences = guarded(action, as_json=as_json)
    if as_json:
        print_json(
            {
                "created": [row.name for row in made if row.fresh],
                "existing": [row.name for row in made if not row.fresh],
                "differences": [asdict(row) for row in differences],
            }
        )
    else:
        fresh = sum(row.fresh for row in made)
        out.print(f"created {fresh} topics, {len(made) - fresh} were there")
        _print_differences(differences)
    raise typer.Exit(ExitCode.FAILED if differences else ExitCode.SUCCESS)


@app.command("describe", epilog=EXIT_HELP)
def describe_topics(
    bootstrap: Bootstrap = None, prefix: Prefix = None, as_json: Json = False
) -> None:
    """Show the ledger's topics as the broker has them.

    Examples:

    ```sh
    tallystick topics describe
    tallystick topics describe --json
    ```
    """

    def action() -> list[ActualTopic]:
        place = connection(bootstrap, prefix)
        return describe(open_admin(place.bootstrap, place.config), place.prefix)

    found = guarded(action, as_json=as_json)
    if as_json:
        print_json({"topics": [asdict(row) for row in found]})
        return
    if not found:
        out.print("no topic of the ledger exists here (run `tallystick topics create`)")
        return
    table = Table(Column("topic", no_wrap=True), "partitions", "copies", "cleanup", *SHOWN)
    for row in found:
        table.add_row(
            row.name,
            str(row.partitions),
            str(row.replication),
            row.config.get("cleanup.policy", "?"),
            *(row.config.get(setting, "?") for setting in SHOWN),
        )
    out.print(table)


@app.command("diff", epilog=EXIT_HELP)
def diff_topics(
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    partitions: AnyPartitions = None,
    replication: Replication = None,
    as_json: Json = False,
) -> None:
    """Name every difference between broker and catalogue; exit 1 if there is one.

    Examples:

    ```sh
    tallystick topics diff
    tallystick topics diff --partitions 24 --replication 3
    ```
    """

    def action() -> list[Difference]:
        place = connection(bootstrap, prefix)
        admin = open_admin(place.bootstrap, place.config)
        return diff(admin, place.prefix, partitions=partitions, replication=replication)

    differences = guarded(action, as_json=as_json)
    if as_json:
        print_json({"differences": [asdict(row) for row in differences]})
    elif differences:
        _print_differences(differences)
    else:
        out.print("broker and catalogue agree")
    raise typer.Exit(ExitCode.FAILED if differences else ExitCode.SUCCESS)


@app.command("catalogue", epilog=EXIT_HELP)
def print_catalogue() -> None:
    """Print the catalogue as a Markdown table; needs no broker.

    Examples:

    ```sh
    tallystick topics catalogue
    ```
    """
    out.out(as_markdown(), end="")


def _print_differences(differences: list[Difference]) -> None:
    for row in differences:
        out.print(str(row), markup=False)
