"""Callers and people: who asks for commits, again, at once, with another plan; and who resolves.

A caller waits with the client's own `Pending`; a person's word is true, or (rarely) a lie.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from tallystick.client.waiting import Ending, Pending, Waiters
from tallystick.errors import TallyError
from tallystick.keys import payload_hash, plan_hash
from tallystick.partitioning import partition_for
from tallystick.records import (
    ItemStatus,
    PartialSuccess,
    Plan,
    PlanItem,
    PlanRequest,
    Resolution,
    ResolutionVerdict,
    ToolPolicy,
)
from tallystick.topics import Topic
from tests.simulation.clock import Clock
from tests.simulation.contracts import CONTRACT
from tests.simulation.dice import Dice
from tests.simulation.history import History, Said
from tests.simulation.log import Log
from tests.simulation.target import Target

EVIDENCE = "e" * 64


def make_plan(key: str, wanted: dict[str, tuple[str, str]], policies: list[ToolPolicy]) -> Plan:
    """A plan of items: identity to (tool, title)."""
    items = tuple(_item(name, tool, title) for name, (tool, title) in wanted.items())
    used = {item.tool for item in items}
    return Plan(
        commit_key=key,
        plan_hash=plan_hash(evidence_hash=EVIDENCE, contract=CONTRACT, module="shop", items=items),
        evidence_hash=EVIDENCE,
        evidence_ref=None,
        contract=CONTRACT,
        module="shop",
        items=items,
        policies=tuple(policy for policy in policies if policy.tool in used),
    )


def _item(name: str, tool: str, title: str) -> PlanItem:
    payload = json.dumps({"title": title}, separators=(",", ":"))
    return PlanItem(tool=tool, identity=name, payload=payload, payload_hash=payload_hash(payload))


@dataclass
class Asked:
    """One request of a caller, and how it ended for that caller."""

    at_ms: int
    request: PlanRequest
    pending: Pending
    ended_at_ms: int = 0
    gave_up: bool = False

    @property
    def ending(self) -> Ending | TallyError | None:
        """What the caller got."""
        if not self.pending.future.done():
            return None
        error = self.pending.future.exception()
        return error if isinstance(error, TallyError) else self.pending.future.result()


@dataclass
class People:
    """All callers and all people of one world."""

    clock: Clock
    dice: Dice
    log: Log
    target: Target
    history: History
    policies: list[ToolPolicy]
    asked: list[Asked] = field(default_factory=list)
    waiters: Waiters = field(default_factory=Waiters)
    contents: dict[str, str] = field(default_factory=dict)
    _resolutions: int = 0

    def submit(
        self,
        plan: Plan,
        within_ms: int,
        supersedes: str | None = None,
        then: Callable[[Asked], None] | None = None,
    ) -> None:
        """Send a request and wait for its ending."""
        number = len(self.asked) + 1
        request = PlanRequest(
            request_id=f"r{number}",
            session_id=f"s{number % 3}",
            run_id="run",
            supersedes=supersedes,
            commit_within_ms=within_ms,
            plan=plan,
        )
        pending = Pending(plan.commit_key, request.request_id, plan.plan_hash, len(plan.items))
        asked = Asked(self.clock.now_ms, request, pending)
        self.asked.append(asked)
        self.waiters.add(pending)
        pending.future.add_done_callback(lambda _: self._ended(asked, then))
        self._send(request)
        if self.dice.fault("request_twice", 0.05):
            self.clock.after(self.dice.between("twice", 1, 3_000), lambda: self._send(request))

    def _send(self, request: PlanRequest) -> None:
        self._produce(Topic.PLAN_REQUESTS, request.plan.commit_key, request)

    def _produce(self, topic: str, key: str, record: PlanRequest | Resolution) -> None:
        value, headers = self.log.codec.encode(topic, record)
        partition = partition_for(key, self.log.partitions)
        self.log.append(topic, partition, key.encode(), value, headers)

    def _ended(self, asked: Asked, then: Callable[[Asked], None] | None) -> None:
        asked.ended_at_ms = self.clock.now_ms
        if then is not None:
            self.clock.after(1, lambda: then(asked))

    def resolve(self, partial: PartialSuccess, *, lying: bool) -> None:
        """Say of each unknown item what is there; a person waits until nothing can be in flight."""
        for item in partial.items:
            if item.status is not ItemStatus.UNKNOWN or self.target.airborne.get(item.intent_id):
                continue  # what may still land nobody can speak of
            there = self.target.holds(item.tool, item.identity, self.clock.now_ms)
            as_planned = self.contents.get(item.intent_id, "") in there
            if there and not as_planned:
                continue  # neither applied nor absent: a person has to clear that up first
            lie = lying and self.dice.fault("lie", 0.5)
            applied = as_planned != lie
            self.history.said.append(Said(self.clock.now_ms, item.intent_id, applied, not lie))
            self._resolutions += 1
            verdict = ResolutionVerdict.APPLIED if applied else ResolutionVerdict.ABSENT
            self._produce(
                Topic.RESOLUTIONS,
                partial.commit_key,
                Resolution(
                    resolution_id=f"res{self._resolutions}",
                    commit_key=partial.commit_key,
                    intent_id=item.intent_id,
                    verdict=verdict,
                    evidence="looked",
                    resolved_by="ana",
                ),
            )


def retitled(plan: Plan, title: str, policies: list[ToolPolicy]) -> Plan:
    """The same plan with other content in its first item."""
    first = plan.items[0]
    items = (_item(first.identity, first.tool, title), *plan.items[1:])
    return _replanned(plan, items, policies)


def without_last(plan: Plan, policies: list[ToolPolicy]) -> Plan:
    """The same plan without its last item."""
    return _replanned(plan, plan.items[:-1], policies)


def _replanned(plan: Plan, items: tuple[PlanItem, ...], policies: list[ToolPolicy]) -> Plan:
    used = {item.tool for item in items}
    hashed = plan_hash(evidence_hash=EVIDENCE, contract=CONTRACT, module="shop", items=items)
    kept = tuple(policy for policy in policies if policy.tool in used)
    return replace(plan, plan_hash=hashed, items=items, policies=kept)
