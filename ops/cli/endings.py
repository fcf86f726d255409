"""Show receipts and partial records to people, side by side with what was planned."""

from __future__ import annotations

import msgspec
from rich.markup import escape
from rich.table import Table

from ops.cli.common import out, plain
from tallystick.client.waiting import Ending
from tallystick.errors import ExitCode
from tallystick.records import ItemStatus, PartialItem, Receipt, ReceiptItem

_STYLES = {
    ItemStatus.APPLIED: "green",
    ItemStatus.EXISTED_BEFORE: "green",
    ItemStatus.MISSING: "red",
    ItemStatus.REJECTED: "red",
    ItemStatus.DIFFERENT: "yellow",
    ItemStatus.DUPLICATE: "yellow",
    ItemStatus.UNKNOWN: "magenta",
}


def exit_code(ending: Ending) -> ExitCode:
    """The exit code that says what an ending proves."""
    if isinstance(ending, Receipt):
        return ExitCode.SUCCESS
    return ExitCode.UNKNOWN if ending.unknown_count else ExitCode.PARTIAL


def as_fields(ending: Ending) -> dict[str, object]:
    """An ending for programs: its fields, and `kind`, which says what it is."""
    return {"kind": type(ending).__name__, **msgspec.structs.asdict(ending)}


def words(text: str) -> str:
    """Text from outside, safe between rich's markup: brackets and control characters as such."""
    return escape(plain(text))


def show(ending: Ending) -> None:
    """Print an ending: one headline, then every item."""
    if isinstance(ending, Receipt):
        out.print(
            f"[bold green]receipt[/] {ending.receipt_id[:16]}  "
            f"{ending.verified_count} of {ending.planned_count} verified, "
            f"round {ending.round}, plan {ending.plan_hash[:12]}"
        )
    else:
        out.print(
            f"[bold yellow]partial[/] {ending.partial_id[:16]}  "
            f"{ending.verified_count} of {ending.planned_count} verified "
            f"({ending.reason}), round {ending.round}, plan {ending.plan_hash[:12]}"
        )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("item", "status", "attempts", "evidence", "note"):
        table.add_column(column, overflow="fold")
    for item in ending.items:
        style = _STYLES[item.status]
        table.add_row(
            words(item.identity),
            f"[{style}]{item.status}[/]",
            str(item.attempts),
            words(_evidence(item)),
            words(_note(item)),
        )
    out.print(table)
    for found in ending.unplanned:
        out.print("[dim]beside the plan:[/] " + words(f"{found.identity} {found.target_ref}"))


def _evidence(item: ReceiptItem | PartialItem) -> str:
    if isinstance(item, ReceiptItem):
        return f"{item.evidence} {item.evidence_id}"
    return " ".join(item.target_refs)


def _note(item: ReceiptItem | PartialItem) -> str:
    if isinstance(item, ReceiptItem):
        return ""
    notes = [item.code, item.detail]
    if item.compensation:
        notes.append(f"can be undone with {item.compensation}")
    return "; ".join(note for note in notes if note)
