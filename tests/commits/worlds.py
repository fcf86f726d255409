"""A small world around the commits fold: plans to fold, and shorthands for the facts about them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from processors.commits.fold import CommitsFold
from processors.commits.state import Commit
from processors.step import Emit
from tallystick.keys import payload_hash, plan_hash
from tallystick.records import (
    Attempt,
    AttemptOutcome,
    AttemptPhase,
    ContractRef,
    ErrorClass,
    FoundItem,
    Intent,
    KeyStyle,
    PartialSuccess,
    Plan,
    PlanAnswer,
    PlanItem,
    PlanRequest,
    Readback,
    ReadbackKind,
    ReadbackRequest,
    Receipt,
    Record,
    Resolution,
    ResolutionVerdict,
    ToolPolicy,
    UnplannedItem,
)

CONTRACT = ContractRef(name="cases", version="1", hash="c" * 64)
KEYED = ToolPolicy(
    tool="create_case",
    scope="cases",
    key_style=KeyStyle.HEADER,
    readback=ReadbackKind.STRONG,
    acknowledgement=False,
    read_first=False,
    visibility_lag_ms=0,
    in_flight_ms=10_000,
    call_timeout_ms=1_000,
    attempts_max=4,
    backoff_ms=100,
    backoff_ms_max=1_000,
    compensation="delete_case",
)
UNKEYED = replace(KEYED, key_style=KeyStyle.NONE)
UNBOUNDED = replace(UNKEYED, in_flight_ms=None)
LAGGING = replace(KEYED, readback=ReadbackKind.LAGGING, visibility_lag_ms=2_000)
UNREADABLE = replace(UNKEYED, readback=ReadbackKind.NONE)
CERTIFYING = replace(UNREADABLE, acknowledgement=True)
NATURAL = replace(KEYED, key_style=KeyStyle.NATURAL)


def make_plan(
    *names: str, policy: ToolPolicy = KEYED, key: str = "k", title: str = "t", evidence: str = "e"
) -> Plan:
    """A plan of one item a name, every payload `{"title": title-name}`."""
    items = tuple(_item(name, policy.tool, f"{title}-{name}") for name in names)
    hashed = plan_hash(
        evidence_hash=evidence * 64, contract=CONTRACT, module="checkout", items=items
    )
    return Plan(
        commit_key=key,
        plan_hash=hashed,
        evidence_hash=evidence * 64,
        evidence_ref=None,
        contract=CONTRACT,
        module="checkout",
        items=items,
        policies=(policy,),
    )


def _item(name: str, tool: str, title: str) -> PlanItem:
    payload = json.dumps({"title": title}, separators=(",", ":"))
    return PlanItem(tool=tool, identity=name, payload=payload, payload_hash=payload_hash(payload))


@dataclass
class World:
    """One commit key under the fold; `now` is the log's time in milliseconds."""

    plan: Plan
    now: int = 1_000_000
    state: Commit | None = None
    emits: list[Emit] = field(default_factory=list)
    fold: CommitsFold = field(default_factory=CommitsFold)
    requests: int = 0

    def apply(self, record: Record) -> list[Record]:
        """Fold one record; returns what it emitted."""
        step = self.fold.apply(self.plan.commit_key, self.state, record, self.now)
        return self._took(step)

    def _took(self, step: Any) -> list[Record]:
        self.state = step.state
        if step.state is not None:
            # What is stored is what the next record meets.
            self.state = self.fold.unpack(self.fold.pack(step.state))
        self.emits.extend(step.emits)
        return [emit.record for emit in step.emits]

    def wait(self, until_ms: int) -> list[Record]:
        """Let log time pass, waking the commit whenever it asks to be woken."""
        end, seen = self.now + until_ms, []
        while self.state is not None:
            due = self.fold.due_ms(self.state)
            if due is None or due > end:
                break
            self.now = max(due, self.now)
            step = self.fold.wake(self.plan.commit_key, self.state, self.now)
            seen.extend(self._took(step))
        self.now = end
        return seen

    def request(
        self, plan: Plan | None = None, within_ms: int = 60_000, supersedes: str | None = None
    ) -> PlanAnswer:
        """A caller asks; returns the ledger's answer."""
        self.requests += 1
        emitted = self.apply(
            PlanRequest(
                request_id=f"r{self.requests}",
                session_id="s",
                run_id="run",
                supersedes=supersedes,
                commit_within_ms=within_ms,
                plan=plan or self.plan,
            )
        )
        return next(record for record in emitted if isinstance(record, PlanAnswer))

    def all(self, kind: type[Record]) -> list[Any]:
        """Everything of one kind that was ever emitted."""
        return [emit.record for emit in self.emits if isinstance(emit.record, kind)]

    @property
    def intents(self) -> list[Intent]:
        return self.all(Intent)

    @property
    def reads(self) -> list[ReadbackRequest]:
        return self.all(ReadbackRequest)

    @property
    def receipts(self) -> list[Receipt]:
        return self.all(Receipt)

    @property
    def partials(self) -> list[PartialSuccess]:
        return self.all(PartialSuccess)

    def last_intent(self, name: str) -> Intent:
        return [intent for intent in self.intents if intent.identity == name][-1]

    def item(self, name: str) -> Any:
        """The standing of the item called `name`."""
        assert self.state is not None
        names = [planned.identity for planned in self.state.plan.items]
        return self.state.head.items[names.index(name)]

    def claim(self, name: str, intent: Intent | None = None) -> list[Record]:
        """A dispatcher claims the item's latest intent."""
        return self.apply(self._fact(intent or self.last_intent(name), AttemptPhase.STARTED))

    def answer(
        self,
        name: str,
        outcome: AttemptOutcome,
        code: str = "",
        *,
        intent: Intent | None = None,
        retry_after_ms: int | None = None,
        target_ref: str | None = None,
    ) -> list[Record]:
        """The target's answer to the item's latest intent."""
        fact = self._fact(intent or self.last_intent(name), AttemptPhase.SETTLED, outcome)
        return self.apply(
            replace(fact, code=code, retry_after_ms=retry_after_ms, target_ref=target_ref)
        )

    def write(self, name: str, outcome: AttemptOutcome = AttemptOutcome.APPLIED) -> list[Record]:
        """Claim and answer."""
        return [*self.claim(name), *self.answer(name, outcome)]

    def _fact(
        self,
        intent: Intent,
        phase: AttemptPhase,
        outcome: AttemptOutcome = AttemptOutcome.PENDING,
    ) -> Attempt:
        return Attempt(
            commit_key=intent.commit_key,
            plan_hash=intent.plan_hash,
            intent_id=intent.intent_id,
            attempt=intent.attempt,
            phase=phase,
            outcome=outcome,
            error_class=ErrorClass.NONE,
            code="",
            detail="",
            retry_after_ms=None,
            target_ref=None,
            dispatcher="d0",
            elapsed_ms=5,
        )

    def read(
        self,
        copies: dict[str, int] | None = None,
        *,
        differing: tuple[str, ...] = (),
        error: str = "",
        request: ReadbackRequest | None = None,
        unplanned: tuple[str, ...] = (),
    ) -> list[Record]:
        """The reader answers the latest request: `copies` by name (default: one of each)."""
        wanted = request or self.reads[-1]
        found = tuple(
            FoundItem(
                tool=item.tool,
                identity=item.identity,
                copies=1 if copies is None else copies.get(item.identity, 0),
                planned_digest="p",
                found_digest="x" if item.identity in differing else "p",
                differing=("title",) if item.identity in differing else (),
                target_refs=(f"ref-{item.identity}",),
                error="",
            )
            for item in wanted.items
        )
        return self.apply(
            Readback(
                request_id=wanted.request_id,
                commit_key=wanted.commit_key,
                plan_hash=wanted.plan_hash,
                found=() if error else found,
                unplanned=tuple(UnplannedItem(identity=u, target_ref="") for u in unplanned),
                error=error,
                detail="",
                reader="r0",
                elapsed_ms=3,
            )
        )

    def resolve(self, name: str, *, applied: bool) -> list[Record]:
        """A person gives evidence about the item."""
        return self.apply(
            Resolution(
                resolution_id="res-1",
                commit_key=self.plan.commit_key,
                intent_id=self.item(name).intent_id,
                verdict=ResolutionVerdict.APPLIED if applied else ResolutionVerdict.ABSENT,
                evidence="seen in the back office",
                resolved_by="ana",
            )
        )
