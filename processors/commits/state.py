"""What the ledger remembers of one commit: the frozen plan, each item's standing, the round.

Three rows, because they change at different rates: the plan once, the receipt once, and the
head (round, deadlines, items) with every fact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from tallystick.records import EvidenceKind, Plan, PlanItem, Receipt, ToolPolicy


class ItemState(StrEnum):
    """Where one planned item stands; `transitions.py` says what may follow what."""

    PLANNED = "planned"
    CHECKING = "checking"
    INTENDED = "intended"
    DISPATCHED = "dispatched"
    BACKOFF = "backoff"
    UNKNOWN = "unknown"
    WRITTEN = "written"
    REJECTED = "rejected"
    MISSING = "missing"
    VERIFIED = "verified"
    DIFFERENT = "different"
    DUPLICATE = "duplicate"


MOVING = frozenset({ItemState.PLANNED, ItemState.INTENDED, ItemState.DISPATCHED, ItemState.BACKOFF})
"""States in which a write may still leave or be under way: nothing is read back meanwhile."""


class Phase(StrEnum):
    """Where the whole commit stands; RETIRED keeps only the key, so that it is never reused."""

    WORKING = "working"
    RECEIPTED = "receipted"
    PARTIAL = "partial"
    RETIRED = "retired"


class Item(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One planned item's standing; `doubtful` lists attempts whose outcome is unknown.

    `tries` counts the attempts of this round, `attempt` those of the plan's whole life.
    """

    intent_id: str
    state: ItemState = ItemState.PLANNED
    attempt: int = 0
    tries: int = 0
    doubtful: tuple[int, ...] = ()
    barred: bool = False
    existed: bool = False
    started_at_ms: int = 0
    settled_at_ms: int = 0
    due_ms: int = 0
    code: str = ""
    detail: str = ""
    evidence: EvidenceKind = EvidenceKind.UNKNOWN
    evidence_id: str = ""
    found_digest: str = ""
    differing: tuple[str, ...] = ()
    target_refs: tuple[str, ...] = ()

    @property
    def unsettled(self) -> bool:
        """Whether an effect of this item is in flight or unknown (DESIGN.md, step 6)."""
        return self.state is ItemState.DISPATCHED or bool(self.doubtful)


class Unplanned(msgspec.Struct, frozen=True, array_like=True):
    """Something that the last read found beside the plan."""

    identity: str
    target_ref: str


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The mutable part of a commit.

    After `cutoff_at_ms` nothing leaves any more; by `answer_by_ms` the round has ended. At most
    one read is open (`open_read`); `read_number` never repeats, so neither does a request id.
    """

    phase: Phase
    round: int
    request_id: str
    session_id: str | None
    run_id: str | None
    frozen_at_ms: int
    cutoff_at_ms: int
    answer_by_ms: int
    items: tuple[Item, ...]
    read_number: int = 0
    read_try: int = 0
    open_read: str = ""
    open_read_at_ms: int = 0
    read_due_ms: int = 0
    ended_at_ms: int = 0
    unplanned: tuple[Unplanned, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit's whole state; `plan_row` is `plan` encoded once, at the freeze."""

    plan: Plan
    plan_row: bytes
    head: Head
    receipt: Receipt | None = None

    def with_head(self, **changes: object) -> Commit:
        """The same commit with some fields of its head changed."""
        return replace(self, head=msgspec.structs.replace(self.head, **changes))

    def with_item(self, index: int, item: Item) -> Commit:
        """The same commit with one item replaced."""
        items = self.head.items
        return self.with_head(items=(*items[:index], item, *items[index + 1 :]))

    def policy(self, index: int) -> ToolPolicy:
        """The frozen policy of the tool that item `index` is written with."""
        tool = self.plan.items[index].tool
        return next(policy for policy in self.plan.policies if policy.tool == tool)

    def index_of(self, intent_id: str) -> int | None:
        """Which item an intent belongs to, or None if it is not of this plan."""
        for index, item in enumerate(self.head.items):
            if item.intent_id == intent_id:
                return index
        return None

    def pairs(self) -> zip[tuple[PlanItem, Item]]:
        """Each planned item beside its standing, in the plan's order."""
        return zip(self.plan.items, self.head.items, strict=True)


_encode = msgspec.msgpack.Encoder().encode
_decode_plan = msgspec.msgpack.Decoder(Plan).decode
_decode_head = msgspec.msgpack.Decoder(Head).decode
_decode_receipt = msgspec.msgpack.Decoder(Receipt).decode


def encode_plan(plan: Plan) -> bytes:
    """The plan's row; made once, because a plan never changes after the freeze."""
    return _encode(plan)


def pack(commit: Commit) -> tuple[bytes, ...]:
    """The commit as rows: plan, head, receipt (empty while there is none)."""
    receipt = _encode(commit.receipt) if commit.receipt is not None else b""
    return commit.plan_row, _encode(commit.head), receipt


def unpack(rows: tuple[bytes, ...]) -> Commit:
    """The inverse of `pack`."""
    plan_row, head, receipt = rows
    return Commit(
        plan=_decode_plan(plan_row),
        plan_row=plan_row,
        head=_decode_head(head),
        receipt=_decode_receipt(receipt) if receipt else None,
    )
