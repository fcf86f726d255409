"""Planted bugs: each takes one rule out of the production code (or of the simulated loop), and the
auditor has to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

import connectors.claims
import processors.commits.advance as advance
import processors.commits.attempts as attempts
import processors.commits.endings as endings
import processors.commits.fold as fold
import processors.commits.issue as issue
import processors.commits.observe as observe
import processors.commits.readbacks as readbacks
import processors.commits.timers as timers
import streams.fence
import tallystick.client.waiting as waiting
from processors.commits.state import Commit, ItemState, Phase
from processors.commits.transitions import ItemEvent, follow
from streams.batch import Filler
from streams.running import Running
from tallystick.records import EvidenceKind, ItemStatus, PlanRequest, Readback
from tests.simulation.connectors import Dispatcher
from tests.simulation.log import Log
from tests.simulation.producer import SimProducer
from tests.simulation.worker import Worker

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Bug:
    """What is wrong, and how it is brought about."""

    name: str
    plant: Plant


def _redispatch(patch: pytest.MonkeyPatch) -> None:
    """The dispatcher claims, but does not move its position with the claim."""
    real = SimProducer.send_offsets

    def skip(self: SimProducer, group: str, *rest: Any) -> None:
        if group != "dispatcher":
            real(self, group, *rest)

    patch.setattr(SimProducer, "send_offsets", skip)


def _new_key(patch: pytest.MonkeyPatch) -> None:
    """Every further attempt goes out under a key of its own."""
    real = issue.issue_due

    def renamed(commit: Commit, at_ms: int) -> Any:
        items = tuple(
            replace(item, intent_id=f"{item.attempt:02}{item.intent_id[2:]}")
            if item.attempt and item.state in (ItemState.BACKOFF, ItemState.PLANNED)
            else item
            for item in commit.head.items
        )
        return real(commit.with_head(items=items), at_ms)

    patch.setattr(advance, "issue_due", renamed)


def _stale_read(patch: pytest.MonkeyPatch) -> None:
    """Any answer counts as the answer to the open read."""
    real = readbacks.fold_readback

    def any_answer(commit: Commit, answer: Readback, at_ms: int) -> Commit:
        return real(commit, replace(answer, request_id=commit.head.open_read), at_ms)

    patch.setattr(fold, "fold_readback", any_answer)


def _count_only(patch: pytest.MonkeyPatch) -> None:
    """What is there is taken for what was planned."""
    patch.setattr(
        readbacks,
        "_judge_different",
        lambda _commit, item, _policy, seen, read_id, _at_ms: readbacks._judge_match(
            item, seen, read_id
        ),
    )


def _prune_unknown(patch: pytest.MonkeyPatch) -> None:
    """An ended commit is retired soon, whatever is in doubt."""

    def due_ms(commit: Commit) -> int | None:
        if commit.head.phase is Phase.PARTIAL:
            return commit.head.ended_at_ms + 30_000
        return timers.due_ms(commit)

    patch.setattr(fold, "due_ms", due_ms)


def _lose_tick(patch: pytest.MonkeyPatch) -> None:
    """A due tick is marked as sent, and never logged."""

    def log_ticks(self: Filler, _batch: Any) -> None:
        for run in self._running.values():
            if run.gate.wait_s(run.task.earliest_due_ms(), self._clock.now_ms()) == 0.0:
                run.gate.sent()

    patch.setattr(Filler, "log_ticks", log_ticks)


def _receipt_on_partial(patch: pytest.MonkeyPatch) -> None:
    """Missing items are rounded up."""
    real = endings.end

    def rounded(commit: Commit, at_ms: int) -> Any:
        items = tuple(
            replace(item, state=ItemState.VERIFIED, evidence=EvidenceKind.READBACK)
            if item.state is ItemState.MISSING
            else item
            for item in commit.head.items
        )
        return real(commit.with_head(items=items), at_ms)

    patch.setattr(advance, "end", rounded)


def _swallow_rejected(patch: pytest.MonkeyPatch) -> None:
    """Partial records leave rejected items out."""
    real = endings._partial

    def fewer(commit: Commit, at_ms: int) -> Any:
        partial = real(commit, at_ms)
        kept = tuple(i for i in partial.items if i.status is not ItemStatus.REJECTED)
        return replace(partial, items=kept)

    patch.setattr(endings, "_partial", fewer)


def _expire_into_missing(patch: pytest.MonkeyPatch) -> None:
    """A claim without an outcome counts as not executed."""

    def missing(commit: Commit, index: int, *_rest: Any) -> Commit:
        item = commit.head.items[index]
        state = follow(item.state, ItemEvent.REFUSE_LAST)
        return commit.with_item(index, replace(item, state=state, due_ms=0))

    patch.setattr(advance, "doubt", missing)


def _repeat_at_once(patch: pytest.MonkeyPatch) -> None:
    """An unknown effect goes out again, key or no key."""
    patch.setattr(attempts, "can_repeat", lambda _policy: True)


def _store_first(patch: pytest.MonkeyPatch) -> None:
    """Rows and positions are written before the transaction commits."""
    real_offsets, real_settle = SimProducer.send_offsets, Running.settle
    real_commit = Worker._commit

    def commit(self: Worker, batch: Any) -> Any:
        for partition, moved in batch.moved.items():
            after = self._producer.changelog_next.get(partition)
            real_settle(self._running[partition], moved, after, lambda: None)
        return real_commit(self, batch)

    patch.setattr(SimProducer, "send_offsets", real_offsets)
    patch.setattr(Worker, "_commit", commit)
    patch.setattr(Running, "settle", lambda *_: None)


def _skip_fence(patch: pytest.MonkeyPatch) -> None:
    """Whatever the group metadata says is sent to the broker."""
    patch.setattr(streams.fence, "require_fence", lambda metadata: metadata)


def _restore_to_stable(patch: pytest.MonkeyPatch) -> None:
    """A restore ends at the last stable offset."""
    patch.setattr(Log, "high_watermark", lambda self, place: self.place(place).stable)


def _late_call(patch: pytest.MonkeyPatch) -> None:
    """A dispatcher that was stopped calls when it wakes up."""
    patch.setattr(connectors.claims, "refusal", lambda _claim, _now_ms: "")


def _believe_first_miss(patch: pytest.MonkeyPatch) -> None:
    """A miss proves absence at once."""
    patch.setattr(readbacks, "conclusive_ms", lambda _policy, _item: 0)


def _no_send_window(patch: pytest.MonkeyPatch) -> None:
    """A miss is believed while the claim's call may still be on its way to the target."""
    patch.setattr(
        readbacks,
        "conclusive_ms",
        lambda policy, item: (
            None
            if policy.in_flight_ms is None and item.doubtful
            else item.started_at_ms + policy.call_timeout_ms
        ),
    )


def _supersede_in_doubt(patch: pytest.MonkeyPatch) -> None:
    """A plan may be replaced while its intents still leave."""
    patch.setattr("processors.commits.freeze.supersede_refusal", lambda _old, _plan: "")


def _accept_drift(patch: pytest.MonkeyPatch) -> None:
    """Another plan under the key takes the place of the frozen one."""
    real = fold.fold_request

    def lenient(key: str, commit: Commit | None, request: PlanRequest, at_ms: int) -> Any:
        named = None if commit is None else commit.plan.plan_hash
        return real(key, commit, replace(request, supersedes=named), at_ms)

    patch.setattr(fold, "fold_request", lenient)


def _settle_early(patch: pytest.MonkeyPatch) -> None:
    """A scope is settled although an effect in it is unknown."""

    def in_flight_only(commit: Commit | None) -> dict[str, int]:
        counts: dict[str, int] = {}
        for index, item in enumerate(commit.head.items if commit is not None else ()):
            if item.state is ItemState.DISPATCHED:
                scope = commit.policy(index).scope
                counts[scope] = counts.get(scope, 0) + 1
        return counts

    patch.setattr(observe, "_unsettled", in_flight_only)


def _earlier_round(patch: pytest.MonkeyPatch) -> None:
    """A caller takes any ending of its key."""

    def settle(self: waiting.Pending) -> None:
        if self._endings:
            self.future.set_result(self._endings[0])

    patch.setattr(waiting.Pending, "_settle", settle)


def _forget_claims(patch: pytest.MonkeyPatch) -> None:
    """The dispatcher calls without having logged its claim."""

    def unclaimed(self: Dispatcher, intent: Any, partition: int) -> Any:
        output = real(self, intent, partition)
        return type(output)("other", output.key, output.value, output.headers, partition)

    real = Dispatcher._started
    patch.setattr(Dispatcher, "_started", unclaimed)


BUGS = (
    Bug("re-dispatch on redelivery", _redispatch),
    Bug("new key on retry", _new_key),
    Bug("accept a read-back older than the last attempt", _stale_read),
    Bug("count-only reconcile", _count_only),
    Bug("prune an unknown", _prune_unknown),
    Bug("lose the tick", _lose_tick),
    Bug("receipt on partial", _receipt_on_partial),
    Bug("swallow a rejected item", _swallow_rejected),
    Bug("claim expires into missing", _expire_into_missing),
    Bug("unkeyed unknown re-issued at once", _repeat_at_once),
    Bug("write the store before the commit", _store_first),
    Bug("skip the fence", _skip_fence),
    Bug("restore only to the last stable offset", _restore_to_stable),
    Bug("call after the send window", _late_call),
    Bug("believe the first miss", _believe_first_miss),
    Bug("believe a miss after the timeout", _no_send_window),
    Bug("supersede in doubt", _supersede_in_doubt),
    Bug("accept drift", _accept_drift),
    Bug("settle a scope early", _settle_early),
    Bug("take an earlier round's ending", _earlier_round),
    Bug("call without a claim", _forget_claims),
)
