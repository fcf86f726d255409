"""The outside world: targets that keep their contracts, behind a network that loses, delays and
repeats. What they really hold is the auditor's measure; nothing else here may look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from connectors.targets.classify import Verdict, WireFault, classify_fault, classify_status
from tallystick.contracts import Answer
from tallystick.records import (
    FoundItem,
    Intent,
    KeyStyle,
    Readback,
    ReadbackKind,
    ReadbackRequest,
    ToolPolicy,
    UnplannedItem,
    WantedItem,
)
from tests.simulation.clock import Clock
from tests.simulation.contracts import Kind
from tests.simulation.dice import Dice
from tests.simulation.history import History, Landed, Looked, Sent

TAIL_MS = (40_000, 7_200_000)
"""How late a write without a bound may land: forty seconds to two hours."""


@dataclass(slots=True)
class Copy:
    """One object of the target, with every content that it ever had."""

    ref: str
    tool: str
    identity: str
    contents: list[tuple[int, str]]

    def at(self, moment_ms: int) -> str | None:
        """Its content then, or None if it was not there."""
        seen = None
        for since_ms, content in self.contents:
            if since_ms <= moment_ms:
                seen = content
        return seen


@dataclass(frozen=True, slots=True)
class Reply:
    """What the dispatcher's target adapter would report."""

    verdict: Verdict
    code: str
    retry_after_ms: int | None = None
    target_ref: str | None = None


@dataclass
class Target:
    """All tools of one world."""

    clock: Clock
    dice: Dice
    history: History
    policies: dict[str, ToolPolicy]
    kinds: dict[str, Kind]
    faulty: float
    copies: list[Copy] = field(default_factory=list)
    outage_until_ms: int = 0
    airborne: dict[str, int] = field(default_factory=dict)
    _by_key: dict[str, Copy] = field(default_factory=dict)

    def write(self, intent: Intent, answer: Callable[[Reply], None]) -> None:
        """Take a call; `answer` comes once, or never within anyone's patience."""
        policy = self.policies[intent.tool]
        sent = self._note(intent, policy)
        way, late_ms = self._way(policy, sent)
        if way in _BEFORE:
            self._tell(sent, answer, _BEFORE[way], self.dice.between("refusing", 1, 40))
            return
        if way == "lost":
            self._tell(sent, answer, _TIMEOUT, policy.call_timeout_ms)
            return
        self._land_later(sent, policy, way, late_ms, answer)

    def _note(self, intent: Intent, policy: ToolPolicy) -> Sent:
        keyed = policy.key_style in (KeyStyle.HEADER, KeyStyle.FIELD)
        sent = Sent(
            number=len(self.history.sent),
            at_ms=self.clock.now_ms,
            commit_key=intent.commit_key,
            plan_hash=intent.plan_hash,
            intent_id=intent.intent_id,
            attempt=intent.attempt,
            tool=intent.tool,
            identity=intent.identity,
            payload=intent.payload,
            key=intent.intent_id if keyed else None,
        )
        self.history.sent.append(sent)
        return sent

    def _way(self, policy: ToolPolicy, sent: Sent) -> tuple[str, int]:
        """What the network and the target do with this call, and how late it lands."""
        dice = self.dice
        if self.clock.now_ms < self.outage_until_ms:
            return dice.pick("outage_as", ("refused", "busy", "lost")), 0
        if dice.fault("outage", self.faulty * 0.03):
            self.outage_until_ms = self.clock.now_ms + dice.between("outage_ms", 500, 20_000)
            return "refused", 0
        for way, share in _WAYS:
            if dice.fault(way, self.faulty * share):
                return way, self._late_ms(policy, way, sent)
        return "good", dice.between("latency", 1, 60)

    def _late_ms(self, policy: ToolPolicy, way: str, sent: Sent) -> int:
        soon_ms = self.dice.between("latency", 1, 60)
        if way != "late":
            return soon_ms
        if policy.in_flight_ms is not None and sent.key is not None:
            sent.beyond_bound = self.dice.fault("bound_broken", 0.3)
        if policy.in_flight_ms is not None and not sent.beyond_bound:
            return self.dice.between("late_ms", 1, policy.in_flight_ms)
        low, high = TAIL_MS
        # Heavy-tailed: half of them within a few times the least, some near the most.
        share = self.dice.of("late_ms").random() ** 4
        return int(low + share * (high - low))

    def _land_later(
        self,
        sent: Sent,
        policy: ToolPolicy,
        way: str,
        late_ms: int,
        answer: Callable[[Reply], None],
    ) -> None:
        timeout_ms = policy.call_timeout_ms
        self.airborne[sent.intent_id] = self.airborne.get(sent.intent_id, 0) + 1
        in_time = late_ms < timeout_ms and way not in _SILENT
        if way == "repeated":
            again_ms = late_ms + self.dice.between("again", 1, 100)
            self.clock.after(again_ms, lambda: self._land(sent, way, repeated=True))

        def arrive() -> None:
            self.airborne[sent.intent_id] -= 1
            reply = self._land(sent, way, repeated=False)
            if in_time:
                self._tell(sent, answer, reply, 1)

        self.clock.after(late_ms, arrive)
        if not in_time:
            code = {"reset": _RESET, "fault_after": _FAULT}.get(way, _TIMEOUT)
            waited_ms = timeout_ms if code is _TIMEOUT else min(late_ms + 2, timeout_ms)
            self._tell(sent, answer, code, waited_ms)

    def _tell(
        self, sent: Sent, answer: Callable[[Reply], None], reply: Reply, after_ms: int
    ) -> None:
        def told() -> None:
            sent.told, sent.told_at_ms = reply.verdict.outcome, self.clock.now_ms
            sent.target_ref = reply.target_ref
            answer(reply)

        self.clock.after(after_ms, told)

    def _land(self, sent: Sent, way: str, *, repeated: bool) -> Reply:
        """The write takes its effect, by the rule of its kind."""
        kind = self.kinds[sent.tool]
        if sent.key is not None and sent.key in self._by_key:
            return self._applied(sent, self._by_key[sent.key])
        there = [c for c in self.copies if (c.tool, c.identity) == (sent.tool, sent.identity)]
        content = sent.payload if way != "garbled" else '{"title":"cut"}'
        if there and kind.unique and kind.key is KeyStyle.NATURAL:
            there[0].contents.append((self.clock.now_ms, content))
            self._landed(sent, content, created=False, repeated=repeated)
            return self._applied(sent, there[0])
        if there and kind.unique:
            same = there[0].contents[-1][1] == sent.payload
            return _EXISTS if same else _EXISTS_DIFFERENT
        made = Copy(
            f"ref{len(self.copies)}", sent.tool, sent.identity, [(self.clock.now_ms, content)]
        )
        self.copies.append(made)
        if sent.key is not None:
            self._by_key[sent.key] = made
        self._landed(sent, content, created=True, repeated=repeated)
        return self._applied(sent, made)

    def _landed(self, sent: Sent, content: str, *, created: bool, repeated: bool) -> None:
        self.history.landed.append(Landed(self.clock.now_ms, sent, created, content, repeated))

    def _applied(self, sent: Sent, copy: Copy) -> Reply:
        acknowledges = self.policies[sent.tool].acknowledgement
        verdict = classify_status(201, self.policies[sent.tool].key_style, {})
        return Reply(verdict, "", target_ref=copy.ref if acknowledges else None)

    def put_before(self, tool: str, identity: str, content: str) -> None:
        """Somebody else wrote this, before any of ours."""
        self.history.foreign.add((tool, identity, content))
        ref = f"ref{len(self.copies)}"
        self.copies.append(Copy(ref, tool, identity, [(self.clock.now_ms, content)]))

    def holds(self, tool: str, identity: str, moment_ms: int) -> tuple[str, ...]:
        """What is really there then, copy by copy."""
        return tuple(
            content
            for copy in self.copies
            if (copy.tool, copy.identity) == (tool, identity)
            and (content := copy.at(moment_ms)) is not None
        )

    def read(self, request: ReadbackRequest, answer: Callable[[Readback], None]) -> None:
        """Look; the answer shows what was there when it was looked."""
        pause_ms = self.dice.between("reading", 1, 80)
        if self.dice.fault("read_stalled", self.faulty * 0.03):
            pause_ms = self.dice.between("stalled", 1_000, 20_000)
        self.clock.after(pause_ms // 2, lambda: self._look(request, pause_ms, answer))

    def _look(
        self, request: ReadbackRequest, pause_ms: int, answer: Callable[[Readback], None]
    ) -> None:
        down = self.clock.now_ms < self.outage_until_ms
        failed = down or self.dice.fault("read_failed", self.faulty * 0.06)
        found = () if failed else tuple(self._find(wanted) for wanted in request.items)
        seen = Readback(
            request_id=request.request_id,
            commit_key=request.commit_key,
            plan_hash=request.plan_hash,
            found=found,
            unplanned=() if failed else self._others(request),
            error="unreachable" if failed else "",
            detail="",
            reader="reader",
            elapsed_ms=pause_ms,
        )
        truth = {
            (w.tool, w.identity): self.holds(w.tool, w.identity, self.clock.now_ms)
            for w in request.items
        }
        self.history.looked.append(Looked(self.clock.now_ms, request, seen, truth))
        self.clock.after(pause_ms - pause_ms // 2, lambda: answer(seen))

    def _find(self, wanted: WantedItem) -> FoundItem:
        policy = self.policies[wanted.tool]
        if self.dice.fault("item_unread", self.faulty * 0.03):
            return _found(wanted, (), error="unreachable")
        moment_ms = self.clock.now_ms
        if policy.readback is ReadbackKind.LAGGING and self.dice.fault("lag", self.faulty * 0.5):
            moment_ms -= self.dice.between("lagging", 0, policy.visibility_lag_ms)
        return _found(wanted, self.holds(wanted.tool, wanted.identity, moment_ms))

    def _others(self, request: ReadbackRequest) -> tuple[UnplannedItem, ...]:
        asked = {wanted.identity for wanted in request.items}
        tools = {wanted.tool for wanted in request.items}
        return tuple(
            UnplannedItem(identity=copy.identity, target_ref=copy.ref)
            for copy in self.copies
            if copy.tool in tools and copy.identity not in asked
        )


def _found(wanted: WantedItem, copies: tuple[str, ...], error: str = "") -> FoundItem:
    content = copies[0] if copies else ""
    return FoundItem(
        tool=wanted.tool,
        identity=wanted.identity,
        copies=len(copies),
        planned_digest="" if error else wanted.payload,
        found_digest=content,
        differing=("title",) if copies and content != wanted.payload else (),
        target_refs=(),
        error=error,
    )


def _status(status: int, retry_after_ms: int | None = None) -> Reply:
    return Reply(classify_status(status, KeyStyle.NONE, {}), f"http_{status}", retry_after_ms)


_TIMEOUT = Reply(classify_fault(WireFault.TIMEOUT), "timeout")
_RESET = Reply(classify_fault(WireFault.RESET), "connection_reset")
_FAULT = _status(500)
_EXISTS = Reply(classify_status(409, KeyStyle.NONE, {}), "")
_EXISTS_DIFFERENT = Reply(classify_status(409, KeyStyle.NONE, {"409": Answer.EXISTS_DIFFERENT}), "")
_BEFORE = {
    "refused": Reply(classify_fault(WireFault.REFUSED), "connection_refused"),
    "busy": _status(503, 700),
    "throttled": _status(429, 1_500),
    "rejected": _status(422),
}
_SILENT = frozenset({"unanswered", "reset", "fault_after", "late"})
_WAYS = (
    ("refused", 0.04),
    ("busy", 0.04),
    ("throttled", 0.04),
    ("rejected", 0.02),
    ("lost", 0.06),
    ("unanswered", 0.06),
    ("reset", 0.03),
    ("fault_after", 0.03),
    ("late", 0.08),
    ("repeated", 0.005),
    ("garbled", 0.015),
)
"""What may befall a call, and how often of a hundred in a world of full faults."""
