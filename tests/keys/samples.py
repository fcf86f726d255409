"""A contract, its policies and small plans for the tests of keys and schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallystick.plans import build_plan
from tallystick.records import ContractRef, KeyStyle, Plan, ReadbackKind, ToolPolicy

CONTRACT = ContractRef(name="cases", version="3", hash="c" * 64)

POLICY = ToolPolicy(
    tool="create_case",
    scope="cases",
    key_style=KeyStyle.HEADER,
    readback=ReadbackKind.STRONG,
    acknowledgement=True,
    read_first=False,
    visibility_lag_ms=0,
    in_flight_ms=5_000,
    call_timeout_ms=2_000,
    attempts_max=5,
    backoff_ms=50,
    backoff_ms_max=2_000,
    compensation="delete_case",
)

ITEMS = (
    {"identity": "TC-1", "payload": {"title": "Log in", "steps": ["open", "type"]}},
    {"identity": "TC-2", "payload": {"title": "Log out", "priority": 1.0}},
)


def plan_of(items: Iterable[Any] = ITEMS, **changes: Any) -> Plan:
    """A valid plan, with some arguments of `build_plan` changed."""
    arguments: dict[str, Any] = {
        "commit_key": "release-42",
        "items": items,
        "contract": CONTRACT,
        "policies": {POLICY.tool: POLICY},
        "module": "payments",
        "evidence": {"suite": "v7"},
    }
    return build_plan(**{**arguments, **changes})
