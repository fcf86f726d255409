"""`tallystick schemas`: register the record contracts, and check that they still fit."""

from __future__ import annotations

from dataclasses import asdict

import typer

from ops.cli.common import (
    EXIT_HELP,
    Json,
    Prefix,
    Registry,
    connection,
    err,
    guarded,
    out,
    print_json,
)
from ops.compatibility import Break, check_all
from ops.registry import COMPATIBILITY, Mismatch, Registered, compare, register
from tallystick.errors import CallerError, ExitCode
from tallystick.schemas import SCHEMA_TOPICS

app = typer.Typer(
    name="schemas",
    help="The Avro contracts of the ledger's topics.",
    epilog=EXIT_HELP,
    no_args_is_help=True,
)


@app.command("register", epilog=EXIT_HELP)
def register_schemas(
    registry: Registry = None, prefix: Prefix = None, as_json: Json = False
) -> None:
    """Register every schema and hold its subject to FULL_TRANSITIVE; safe to repeat.

    Examples:

    ```sh
    tallystick schemas register --registry http://127.0.0.1:8081
    ```
    """

    def action() -> list[Registered]:
        place = connection(None, prefix, registry)
        if not place.registry:
            raise CallerError(
                "no registry is named",
                where="schemas register",
                fix="give --registry URL or set TALLYSTICK_REGISTRY",
            )
        with err.status(f"registering {len(SCHEMA_TOPICS)} schemas at {place.registry}"):
            return register(place.registry, place.prefix)

    rows = guarded(action, as_json=as_json)
    if as_json:
        print_json({"compatibility": COMPATIBILITY, "registered": [asdict(row) for row in rows]})
    else:
        for row in rows:
            out.print(f"{row.schema_id:>6}  {row.subject}", markup=False)


@app.command("check", epilog=EXIT_HELP)
def check_schemas(registry: Registry = None, prefix: Prefix = None, as_json: Json = False) -> None:
    """Hold every schema against its released versions, and against a registry if one is named.

    Ends with 1 if anything does not fit.

    Examples:

    ```sh
    tallystick schemas check
    tallystick schemas check --registry http://127.0.0.1:8081 --json
    ```
    """

    def action() -> tuple[str, list[Break], list[Mismatch]]:
        place = connection(None, prefix, registry)
        known = compare(place.registry, place.prefix) if place.registry else []
        return place.registry, check_all(), known

    url, breaks, mismatches = guarded(action, as_json=as_json)
    if as_json:
        print_json(
            {
                "breaks": [asdict(row) for row in breaks],
                "registry": [asdict(row) for row in mismatches] if url else None,
            }
        )
    else:
        for row in (*breaks, *mismatches):
            out.print(str(row), markup=False)
        if not breaks and not mismatches:
            known = ", and the registry has them" if url else ""
            out.print(f"{len(SCHEMA_TOPICS)} schemas fit every released version{known}")
    raise typer.Exit(ExitCode.FAILED if breaks or mismatches else ExitCode.SUCCESS)
