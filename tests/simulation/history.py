"""What really happened in a world, for the auditor alone: no process can read it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tallystick.records import AttemptOutcome, Readback, ReadbackRequest, ToolPolicy


@dataclass(slots=True)
class Sent:
    """One call of the target; `told` is what the dispatcher learned, if it lived to learn it."""

    number: int
    at_ms: int
    commit_key: str
    plan_hash: str
    intent_id: str
    attempt: int
    tool: str
    identity: str
    payload: str
    key: str | None
    told: AttemptOutcome | None = None
    told_at_ms: int = 0
    target_ref: str | None = None
    beyond_bound: bool = False


@dataclass(frozen=True, slots=True)
class Landed:
    """One call changed the target: `created` a copy, else replaced the content of one."""

    at_ms: int
    sent: Sent
    created: bool
    content: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class Looked:
    """One read of the target: what was there at that moment, whatever the answer showed."""

    at_ms: int
    request: ReadbackRequest
    answer: Readback
    truth: dict[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Said:
    """A person's word on one effect, and whether it was true."""

    at_ms: int
    intent_id: str
    applied: bool
    true: bool


@dataclass
class History:
    """In the order of time."""

    sent: list[Sent] = field(default_factory=list)
    landed: list[Landed] = field(default_factory=list)
    looked: list[Looked] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    foreign: set[tuple[str, str, str]] = field(default_factory=set)
    policies: dict[str, ToolPolicy] = field(default_factory=dict)
    healed_at_ms: int = 0
