"""`tallystick commit`: submit a plan file, wait, and end with what the facts support."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.status import Status

from connectors.contract_file import load_contract
from ops.cli.common import (
    Bootstrap,
    Connection,
    Json,
    Prefix,
    Registry,
    connection,
    err,
    guarded,
    print_json,
    read_text,
)
from ops.cli.endings import as_fields, exit_code, show
from ops.cli.process import Interrupted
from tallystick.client import Progress, Tally
from tallystick.client.waiting import Ending
from tallystick.contracts import Contract
from tallystick.errors import CallerError
from tallystick.plans import parse_plan, plan_from
from tallystick.protocol import COMMIT_WITHIN_MS, COMMIT_WITHIN_MS_MAX, COMMIT_WITHIN_MS_MIN
from tallystick.records import Plan


class Origin(msgspec.Struct, frozen=True):
    """Where a request comes from, and the plan that it replaces."""

    supersedes: str | None
    session_id: str | None
    run_id: str | None


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
    registry: Registry = None,
    as_json: Json = False,
) -> None:
    """Freeze a plan, carry it out once, and print its receipt or partial record.

    The plan is JSON: commit_key, module, tool, items of identity and payload. Asking again with
    the same plan is always safe: nothing is written twice, and a receipt comes back as it was.

    Examples:

    ```sh
    tallystick commit plan.json --contract cases.yaml
    tallystick commit plan.json --contract cases.yaml --wait 5 --json
    cat plan.json | tallystick commit - --contract cases.yaml
    ```
    """

    def action() -> Ending:
        place = connection(bootstrap, prefix, registry)
        _check_seconds(wait, within)
        plan = load_plan(plan_file, load_contract(contract))
        origin = Origin(supersedes=supersedes, session_id=session, run_id=run)
        return _carry_out(place, plan, origin, wait, round(within * 1_000))

    try:
        ending = guarded(action, as_json=as_json)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted; the commit goes on", fix="ask again with the same plan"
        ) from None
    if as_json:
        print_json(as_fields(ending))
    else:
        show(ending)
    raise typer.Exit(exit_code(ending))


def _carry_out(
    place: Connection, plan: Plan, origin: Origin, wait_s: float | None, within_ms: int
) -> Ending:
    with (
        Tally.connect(
            place.bootstrap, prefix=place.prefix, codec=place.codec(), config=place.config
        ) as tally,
        err.status(f"{plan.commit_key}: sent {len(plan.items)} items") as status,
    ):
        return tally.commit(
            plan,
            wait_s=wait_s,
            commit_within_ms=within_ms,
            supersedes=origin.supersedes,
            session_id=origin.session_id,
            run_id=origin.run_id,
            on_progress=lambda step: _report(status, step),
        )


def _report(status: Status, step: Progress) -> None:
    counts = f" {step.done} of {step.planned}" if step.done else ""
    status.update(f"{step.commit_key}: {step.what}{counts}")


def _check_seconds(wait: float | None, within: float) -> None:
    """Before anything is sent; the ledger checks the deadline again."""
    if wait is not None and not (math.isfinite(wait) and wait <= COMMIT_WITHIN_MS_MAX / 1_000):
        raise CallerError(f"{wait:g} is no time to wait", where="--wait", fix="give seconds")
    if not COMMIT_WITHIN_MS_MIN <= within * 1_000 <= COMMIT_WITHIN_MS_MAX:
        low, high = COMMIT_WITHIN_MS_MIN // 1_000, COMMIT_WITHIN_MS_MAX // 1_000
        raise CallerError(
            f"{within:g} s is out of range", where="--within", fix=f"give {low} to {high} seconds"
        )
