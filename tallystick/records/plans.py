"""What is promised: plans, the request to freeze one, and the ledger's answer."""

from __future__ import annotations

from enum import StrEnum

from tallystick.records.base import Record
from tallystick.records.endings import Receipt


class KeyStyle(StrEnum):
    """How a target takes our idempotency key."""

    NONE = "none"
    HEADER = "header"
    FIELD = "field"
    NATURAL = "natural"


class ReadbackKind(StrEnum):
    """How a written item can be looked up afterwards."""

    NONE = "none"
    LAGGING = "lagging"
    STRONG = "strong"


class ContractRef(Record):
    """Which contract, byte for byte: `hash` is SHA-256 over its canonical JSON, in hex."""

    name: str
    version: str
    hash: str


class ToolPolicy(Record):
    """The part of a tool's contract that the ledger decides by; frozen with the plan.

    `in_flight_ms` is the bound on how long a request may still commit after it was sent (None:
    no bound is known), `visibility_lag_ms` how long a committed write may stay invisible.
    """

    tool: str
    scope: str
    key_style: KeyStyle
    readback: ReadbackKind
    acknowledgement: bool
    read_first: bool
    visibility_lag_ms: int
    in_flight_ms: int | None
    call_timeout_ms: int
    attempts_max: int
    backoff_ms: int
    backoff_ms_max: int
    compensation: str | None


class PlanItem(Record):
    """One promised item: `payload` is canonical JSON text, `payload_hash` its SHA-256 in hex."""

    tool: str
    identity: str
    payload: str
    payload_hash: str


class Plan(Record):
    """A whole promise; `plan_hash` covers everything that the target would see of it."""

    commit_key: str
    plan_hash: str
    evidence_hash: str
    evidence_ref: str | None
    contract: ContractRef
    module: str
    items: tuple[PlanItem, ...]
    policies: tuple[ToolPolicy, ...]


class PlanRequest(Record):
    """A caller asks that `plan` be frozen and carried out within `commit_within_ms`."""

    request_id: str
    session_id: str | None
    run_id: str | None
    supersedes: str | None
    commit_within_ms: int
    plan: Plan


class EvidenceSnapshot(Record):
    """Which version of the world a frozen plan rests on."""

    commit_key: str
    plan_hash: str
    evidence_hash: str
    evidence_ref: str | None
    frozen_at_ms: int


class PlanVerdict(StrEnum):
    """The ledger's answer to a request; an unknown symbol reads as UNKNOWN, never as success."""

    UNKNOWN = "unknown"
    FROZEN = "frozen"
    JOINED = "joined"
    RESUMED = "resumed"
    COMPLETED = "completed"
    SUPERSEDED = "superseded"
    DRIFT = "drift"
    REFUSED = "refused"


class PlanAnswer(Record):
    """The verdict on one request, with the plan that stands and, where there is one, its receipt.

    `round` is the attempt at the whole plan that the caller should wait for. `reason` names the
    broken rule when the verdict is DRIFT or REFUSED, else it is empty.
    """

    request_id: str
    commit_key: str
    verdict: PlanVerdict
    reason: str
    round: int
    deadline_at_ms: int
    plan: Plan | None
    receipt: Receipt | None
