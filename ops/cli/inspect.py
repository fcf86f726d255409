"""`tallystick inspect commit KEY`: planned and found side by side, from the log alone."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ops.cli.common import (
    EXIT_HELP,
    Bootstrap,
    Connection,
    Json,
    Prefix,
    Registry,
    connection,
    guarded,
    out,
    print_json,
)
from ops.cli.endings import as_fields, exit_code, show, words
from streams.scan import Logged, LogReader
from tallystick.errors import CallerError
from tallystick.partitioning import partition_for
from tallystick.records import (
    Attempt,
    AttemptPhase,
    PartialSuccess,
    Plan,
    PlanAnswer,
    Receipt,
    Verification,
)
from tallystick.topics import Topic

app = typer.Typer(
    no_args_is_help=True, help="Look at one commit, as the log has it.", epilog=EXIT_HELP
)

_TOPICS = (Topic.PLANS, Topic.ATTEMPTS, Topic.VERIFICATIONS, Topic.RECEIPTS, Topic.PARTIALS)


class CommitView(msgspec.Struct):
    """Everything that the log says of one commit key."""

    commit_key: str
    plan: Plan | None = None
    answers: list[PlanAnswer] = []
    attempts: list[Attempt] = []
    verifications: list[Verification] = []
    endings: list[Receipt | PartialSuccess] = []

    def take(self, entry: Logged) -> None:
        """Add one record of this key."""
        record = entry.record
        if isinstance(record, PlanAnswer):
            self.answers.append(record)
            self.plan = record.plan or self.plan
        elif isinstance(record, Attempt):
            self.attempts.append(record)
        elif isinstance(record, Verification):
            self.verifications.append(record)
        elif isinstance(record, Receipt | PartialSuccess):
            self.endings.append(record)


def gather(place: Connection, commit_key: str) -> CommitView:
    """Read the one partition of each topic in which `commit_key` lives."""
    reader = LogReader(place.bootstrap, place.prefix, place.codec(), place.config)
    try:
        view = CommitView(commit_key)
        for topic in _TOPICS:
            partition = partition_for(commit_key, reader.partitions(topic))
            for entry in reader.read_all(topic, partition):
                if entry.key == commit_key:
                    view.take(entry)
        view.endings.sort(key=lambda ending: ending.round)
        return view
    finally:
        reader.close()


@app.command("commit", epilog=EXIT_HELP)
def inspect_commit(
    commit_key: Annotated[str, typer.Argument(metavar="KEY", help="The commit key.")],
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """Show what was planned beside what was found, item by item.

    Examples:

    ```sh
    tallystick inspect commit release-42
    tallystick inspect commit release-42 --json | jq .endings[-1].kind
    ```
    """

    def action() -> CommitView:
        view = gather(connection(bootstrap, prefix, registry), commit_key)
        if not view.answers:
            raise CallerError(
                "no plan was ever asked for under this key",
                where=f"commit {commit_key}",
                fix="check the key and --prefix",
            )
        return view

    view = guarded(action, as_json=as_json)
    if as_json:
        endings = [as_fields(ending) for ending in view.endings]
        print_json({**msgspec.structs.asdict(view), "endings": endings})
    else:
        _show(view)
    if view.endings:
        raise typer.Exit(exit_code(view.endings[-1]))


def _show(view: CommitView) -> None:
    out.print(
        f"[bold]{words(view.commit_key)}[/]: " + ", ".join(a.verdict.value for a in view.answers)
    )
    if view.plan is not None:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("planned", "payload", "calls", "last answer", "found"):
            table.add_column(column, overflow="fold")
        for item in view.plan.items:
            calls = [a for a in view.attempts if _about(view.endings, a, item.identity)]
            settled = [a for a in calls if a.phase is AttemptPhase.SETTLED]
            last = f"{settled[-1].outcome} {settled[-1].code}" if settled else "none"
            started = sum(a.phase is AttemptPhase.STARTED for a in calls)
            table.add_row(
                words(item.identity),
                item.payload_hash[:12],
                str(started),
                words(last),
                _found(view, item.identity),
            )
        out.print(table)
    for ending in view.endings:
        show(ending)
    if not view.endings:
        out.print("[dim]its round has not ended[/]")


def _about(endings: list[Receipt | PartialSuccess], attempt: Attempt, identity: str) -> bool:
    intents: set[str] = {
        item.intent_id for ending in endings for item in ending.items if item.identity == identity
    }
    return attempt.intent_id in intents


def _found(view: CommitView, identity: str) -> str:
    seen = [
        item
        for verification in view.verifications
        for item in verification.items
        if item.identity == identity
    ]
    return f"{seen[-1].status} {seen[-1].found_digest[:12]}" if seen else "never read"
