"""`tallystick resolve INTENT`: settle an unknown effect with evidence from outside."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from ops.cli.common import (
    Bootstrap,
    Connection,
    Json,
    Prefix,
    Registry,
    connection,
    err,
    guarded,
    out,
    print_json,
)
from streams.scan import LogReader
from tallystick.client import Tally
from tallystick.errors import CallerError
from tallystick.records import Intent, Resolution
from tallystick.topics import Topic


def resolve(
    intent: Annotated[
        str, typer.Argument(metavar="INTENT", help="The intent id, or its first 8+ characters.")
    ],
    applied: Annotated[
        bool, typer.Option("--applied", help="The effect exists in the target.")
    ] = False,
    absent: Annotated[
        bool, typer.Option("--absent", help="The effect does not exist and will not come.")
    ] = False,
    evidence: Annotated[
        str, typer.Option(metavar="TEXT", help="What was looked at, and where.")
    ] = "",
    by: Annotated[str | None, typer.Option(help="Who says so.", show_default="you")] = None,
    commit_key: Annotated[
        str | None, typer.Option("--commit", help="The commit key; spares the search.")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """Log evidence about an effect whose outcome is unknown.

    Where the target can be read, a fresh read still decides. Where it cannot, the evidence stands
    in the receipt under your name.

    Examples:

    ```sh
    tallystick resolve 3f9c21aa --absent --evidence "not in the outbox, ticket 512"
    tallystick resolve 3f9c21aa --applied --evidence "seen by the owner" --by maria
    ```
    """

    def action() -> Resolution:
        _check(applied=applied, absent=absent, evidence=evidence)
        place = connection(bootstrap, prefix, registry)
        intent_id, key = _find(place, intent, commit_key)
        with Tally.connect(
            place.bootstrap, prefix=place.prefix, codec=place.codec(), config=place.config
        ) as tally:
            return tally.resolve(
                intent_id,
                commit_key=key,
                applied=applied,
                evidence=evidence.strip(),
                resolved_by=by or getpass.getuser(),
            )

    done = guarded(action, as_json=as_json)
    if as_json:
        print_json(done)
    else:
        out.print(
            f"logged: {done.intent_id[:16]} is {done.verdict} ({done.commit_key})", markup=False
        )


def _check(*, applied: bool, absent: bool, evidence: str) -> None:
    if applied == absent:
        raise CallerError(
            "the verdict is missing or doubled",
            where="resolve",
            fix="give --applied if the effect is in the target, --absent if it never will be",
        )
    if not evidence.strip():
        raise CallerError(
            "--evidence is missing or empty",
            where="resolve",
            fix="say what was looked at, and where; it stands in the receipt",
        )


def _find(place: Connection, wanted: str, commit_key: str | None) -> tuple[str, str]:
    """The whole intent id and its commit key, from the intents topic."""
    if len(wanted) < 8:
        raise CallerError(
            f"{wanted!r} is too short",
            where="resolve",
            fix="give the intent id from the partial record, or its first 8 characters or more",
        )
    reader = LogReader(place.bootstrap, place.prefix, place.codec(), place.config)
    found: dict[str, str] = {}
    try:
        with err.status("looking for the intent"):
            for entry in reader.read_all(Topic.INTENTS):
                record = entry.record
                if (
                    isinstance(record, Intent)
                    and record.intent_id.startswith(wanted)
                    and commit_key in (None, record.commit_key)
                ):
                    found[record.intent_id] = record.commit_key
    finally:
        reader.close()
    if len(found) != 1:
        count = "no intent" if not found else f"{len(found)} intents"
        raise CallerError(
            f"{count} begins with this id", where=wanted, fix="give the whole id from the partial"
        )
    return next(iter(found.items()))
