"""`tallystick commit`: submit a plan file, wait, and end with what the facts support."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.status import Status

from connectors.contract_file import load_contract
from ops.cli.common import (
    EXIT_HELP,
    Bootstrap,
    Json,
    Prefix,
    connection,
    err,
    guarded,
    print_json,
    read_text,
)
from ops.cli.endings import exit_code, show
from tallystick.client import Progress, Tally
from tallystick.client.waiting import Ending
from tallystick.contracts import Contract
from tallystick.plans import parse_plan, plan_from
from tallystick.protocol import COMMIT_WITHIN_MS
from tallystick.records import Plan

HELP = f"""Freeze a plan, carry it out once, and print its receipt or partial record.

The plan is JSON: commit_key, module, tool, items of identity and payload. Asking again with the
same plan is always safe: nothing is written twice, and a receipt comes back as it was.

Examples:

  tallystick commit plan.json --contract cases.yaml

  tallystick commit plan.json --contract cases.yaml --wait 5 --json

  jq … | tallystick commit - --contract cases.yaml

{EXIT_HELP}
"""


def load_plan(path: Path, contract: Contract) -> Plan:
    """A plan file checked against its contract; raises PlanError or ContractError."""
    document = parse_plan(read_text(path), where=str(path))
    return plan_from(document, contract=contract.ref, policies=contract.policies())


def commit(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN.json", help="The plan; - reads standard input.")
    ],
    contract: Annotated[Path, typer.Option(help="The contract file of the target (YAML).")],
    wait: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="S", help="Stop waiting after this many seconds (exit 4)."),
    ] = None,
    within: Annotated[
        float,
        typer.Option(metavar="S", help="Deadline of the commit itself, in seconds."),
    ] = COMMIT_WITHIN_MS / 1_000,
    supersedes: Annotated[
        str | None, typer.Option(metavar="PLAN_HASH", help="Replace this frozen plan.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="The agent session it belongs to.")] = None,
    run: Annotated[str | None, typer.Option(help="The agent run it belongs to.")] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    as_json: Json = False,
) -> None:
    """Submit a plan and wait for its ending (registered with HELP)."""

    def action() -> Ending:
        place = connection(bootstrap, prefix)
        plan = load_plan(plan_file, load_contract(contract))
        with (
            Tally.connect(place.bootstrap, prefix=place.prefix, config=place.config) as tally,
            err.status(f"{plan.commit_key}: sent {len(plan.items)} items") as status,
        ):
            return tally.commit(
                plan,
                wait_s=wait,
                commit_within_ms=round(within * 1_000),
                supersedes=supersedes,
                session_id=session,
                run_id=run,
                on_progress=lambda step: _report(status, step),
            )

    ending = guarded(action, as_json=as_json)
    if as_json:
        print_json({"kind": type(ending).__name__, **_fields(ending)})
    else:
        show(ending)
    raise typer.Exit(exit_code(ending))


def _report(status: Status, step: Progress) -> None:
    counts = f" {step.done} of {step.planned}" if step.done else ""
    status.update(f"{step.commit_key}: {step.what}{counts}")


def _fields(ending: Ending) -> dict[str, object]:
    return {name: getattr(ending, name) for name in ending.__struct_fields__}
