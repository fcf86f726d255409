"""Tallystick's client: submit plans, get receipts; and the shared words of the whole ledger.

This is the one package that an agent process imports.
"""

from tallystick.client import AsyncTally, Pending, Progress, Tally
from tallystick.contracts import Contract, parse_contract
from tallystick.errors import (
    BrokerUnavailable,
    CallerError,
    CanonicalError,
    ContractError,
    DriftError,
    ExitCode,
    OperatorError,
    PlanError,
    RefusedError,
    TallyError,
    TopicMismatch,
    WaitTimeout,
)
from tallystick.keys import call_key, intent_id, plan_hash
from tallystick.plans import build_plan, parse_plan, plan_from
from tallystick.records import (
    EvidenceKind,
    ItemStatus,
    PartialReason,
    PartialSuccess,
    Plan,
    Receipt,
)

__all__ = [
    "AsyncTally",
    "BrokerUnavailable",
    "CallerError",
    "CanonicalError",
    "Contract",
    "ContractError",
    "DriftError",
    "EvidenceKind",
    "ExitCode",
    "ItemStatus",
    "OperatorError",
    "PartialReason",
    "PartialSuccess",
    "Pending",
    "Plan",
    "PlanError",
    "Progress",
    "Receipt",
    "RefusedError",
    "Tally",
    "TallyError",
    "TopicMismatch",
    "WaitTimeout",
    "build_plan",
    "call_key",
    "intent_id",
    "parse_contract",
    "parse_plan",
    "plan_from",
    "plan_hash",
]
