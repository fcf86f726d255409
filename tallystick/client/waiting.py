"""Join what the ledger answers to the callers that wait for it; knows nothing of Kafka."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field

from tallystick.errors import DriftError, RefusedError, TallyError, WaitTimeout
from tallystick.records import (
    Attempt,
    AttemptPhase,
    PartialSuccess,
    PlanAnswer,
    PlanVerdict,
    Receipt,
    Record,
    Verification,
)

Ending = Receipt | PartialSuccess


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a commit on its way: a word for people, and counts where there are any."""

    commit_key: str
    what: str
    done: int
    planned: int


@dataclass
class Pending:
    """A submitted plan; `result` waits for its ending, `answer` is the ledger's first word."""

    commit_key: str
    request_id: str
    plan_hash: str
    planned: int
    on_progress: Callable[[Progress], None] | None = None
    future: Future[Ending] = field(default_factory=Future)
    answer: PlanAnswer | None = None
    _endings: list[Ending] = field(default_factory=list)
    _settled: set[str] = field(default_factory=set)

    def result(self, wait_s: float | None = None) -> Ending:
        """The receipt or partial record; WaitTimeout after `wait_s` seconds without one.

        The commit goes on after a timeout: ask again with the same plan, and nothing is written
        twice.
        """
        try:
            return self.future.result(wait_s)
        except FutureTimeout:
            raise self.timed_out(wait_s) from None

    def timed_out(self, wait_s: float | None) -> WaitTimeout:
        """The error that says how far the commit was when its caller stopped waiting."""
        if self.answer is None:
            state = "no worker of the commits stage has answered"
            fix = "start one with `tallystick worker`, then ask again with the same plan"
        else:
            state = f"the plan is {self.answer.verdict}, its round has not ended"
            fix = "ask again with the same plan; nothing is written twice"
        return WaitTimeout(
            f"waited {wait_s:g} s: {state}", where=f"commit {self.commit_key}", fix=fix
        )

    def take(self, record: Record) -> None:
        """Note one record about this commit key; settles the future when it is the ending."""
        if self.future.done():
            return
        if isinstance(record, PlanAnswer):
            self._take_answer(record)
        elif isinstance(record, Receipt | PartialSuccess):
            self._endings.append(record)
            self._settle()
        elif isinstance(record, Attempt):
            self._take_attempt(record)
        elif isinstance(record, Verification) and record.plan_hash == self.plan_hash:
            self._report("verified", record.verified_count, record.planned_count)

    def fail(self, error: TallyError) -> None:
        """End the wait with an error."""
        if not self.future.done():
            self.future.set_exception(error)

    def _take_answer(self, answer: PlanAnswer) -> None:
        if answer.request_id != self.request_id:
            return
        self.answer = answer
        self._report(answer.verdict.value, 0, self.planned)
        if answer.verdict is PlanVerdict.COMPLETED and answer.receipt is not None:
            self.future.set_result(answer.receipt)
        elif answer.verdict is PlanVerdict.DRIFT:
            self.fail(_drift(answer))
        elif answer.verdict in (PlanVerdict.REFUSED, PlanVerdict.UNKNOWN):
            self.fail(_refused(answer))
        else:
            self._settle()

    def _take_attempt(self, attempt: Attempt) -> None:
        if attempt.phase is AttemptPhase.SETTLED and attempt.plan_hash == self.plan_hash:
            self._settled.add(attempt.intent_id)
            self._report("answered", len(self._settled), self.planned)

    def _settle(self) -> None:
        """The ending may overtake the answer, because they travel on two topics."""
        if self.answer is None:
            return
        for ending in self._endings:
            if ending.plan_hash == self.plan_hash and ending.round >= self.answer.round:
                self.future.set_result(ending)
                return

    def _report(self, what: str, done: int, planned: int) -> None:
        if self.on_progress is not None:
            self.on_progress(Progress(self.commit_key, what, done, planned))


def _drift(answer: PlanAnswer) -> DriftError:
    frozen = answer.plan.plan_hash if answer.plan is not None else ""
    return DriftError(
        f"another plan ({frozen[:12]}…) is frozen under this commit key",
        frozen=frozen,
        where=f"commit {answer.commit_key}",
        fix="retry the frozen plan, choose a new commit key, or supersede it explicitly",
    )


_REFUSALS = {
    "key_retired": "this commit key was used long ago and is retired; choose a new one",
    "key_mismatch": "the request's key is not the plan's commit key",
    "commit_within_out_of_range": "commit_within is out of range (1 s to 7 days)",
    "supersedes_nothing": "no plan is frozen under this key that could be superseded",
    "supersede_while_working": "the plan to supersede is still being carried out",
    "supersede_in_doubt": "the new plan drops or changes an item whose effect is unknown",
}


def _refused(answer: PlanAnswer) -> RefusedError:
    message = _REFUSALS.get(answer.reason, f"the ledger refused the plan: {answer.reason}")
    return RefusedError(message, reason=answer.reason, where=f"commit {answer.commit_key}")


class Waiters:
    """Every pending commit of one client, by commit key; safe across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[str, list[Pending]] = {}

    def add(self, pending: Pending) -> None:
        """Begin to deliver records about its commit key."""
        with self._lock:
            self._by_key.setdefault(pending.commit_key, []).append(pending)
        pending.future.add_done_callback(lambda _: self._drop(pending))

    def deliver(self, commit_key: str, record: Record) -> None:
        """Hand `record` to everyone who waits for this key."""
        with self._lock:
            waiting = tuple(self._by_key.get(commit_key, ()))
        for pending in waiting:
            pending.take(record)

    def wants(self, commit_key: str) -> bool:
        """Whether anyone waits for this key; spares decoding what nobody asked for."""
        return commit_key in self._by_key

    def fail_all(self, error: TallyError) -> None:
        """End every wait with `error`."""
        with self._lock:
            waiting = [pending for group in self._by_key.values() for pending in group]
        for pending in waiting:
            pending.fail(error)

    def _drop(self, pending: Pending) -> None:
        with self._lock:
            group = [p for p in self._by_key.get(pending.commit_key, []) if p is not pending]
            if group:
                self._by_key[pending.commit_key] = group
            else:
                self._by_key.pop(pending.commit_key, None)
