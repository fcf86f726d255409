"""Answer plan requests: the first plan under a commit key is frozen, and nothing changes it."""

from __future__ import annotations

from processors.commits.rounds import first_round, retry_round
from processors.commits.state import Commit, Phase
from processors.commits.supersede import supersede, supersede_refusal
from processors.step import Emit
from tallystick.plans import check_plan
from tallystick.protocol import COMMIT_WITHIN_MS_MAX, COMMIT_WITHIN_MS_MIN
from tallystick.records import EvidenceSnapshot, PlanAnswer, PlanRequest, PlanVerdict
from tallystick.topics import Topic


def fold_request(
    key: str, commit: Commit | None, request: PlanRequest, at_ms: int
) -> tuple[Commit | None, tuple[Emit, ...]]:
    """The commit after one request, and the answer to the caller."""
    broken = _broken_rule(key, request)
    if broken:
        return commit, (_answer(key, commit, request, PlanVerdict.REFUSED, broken),)
    if commit is None:
        if request.supersedes is not None:
            refused = _answer(key, None, request, PlanVerdict.REFUSED, "supersedes_nothing")
            return None, (refused,)
        return _frozen(first_round(request, at_ms), request, PlanVerdict.FROZEN, at_ms)
    if commit.head.phase is Phase.RETIRED:
        return commit, (_answer(key, commit, request, PlanVerdict.REFUSED, "key_retired"),)
    if request.plan.plan_hash == commit.plan.plan_hash:
        return _same_plan(key, commit, request, at_ms)
    if request.supersedes != commit.plan.plan_hash:
        reason = "plan_differs" if request.supersedes is None else "supersedes_another"
        return commit, (_answer(key, commit, request, PlanVerdict.DRIFT, reason),)
    broken = supersede_refusal(commit, request.plan)
    if broken:
        return commit, (_answer(key, commit, request, PlanVerdict.REFUSED, broken),)
    successor = supersede(commit, request, at_ms)
    return _frozen(successor, request, PlanVerdict.SUPERSEDED, at_ms)


def _broken_rule(key: str, request: PlanRequest) -> str:
    if request.plan.commit_key != key:
        return "key_mismatch"
    if not COMMIT_WITHIN_MS_MIN <= request.commit_within_ms <= COMMIT_WITHIN_MS_MAX:
        return "commit_within_out_of_range"
    return check_plan(request.plan)


def _same_plan(
    key: str, commit: Commit, request: PlanRequest, at_ms: int
) -> tuple[Commit, tuple[Emit, ...]]:
    """The plan that stands: hand out its receipt, join its round, or begin a round that
    completes it."""
    phase = commit.head.phase
    if phase is Phase.RECEIPTED:
        return commit, (_answer(key, commit, request, PlanVerdict.COMPLETED),)
    if phase is Phase.WORKING or request.request_id == commit.head.request_id:
        return commit, (_answer(key, commit, request, PlanVerdict.JOINED),)
    retried = retry_round(commit, request, at_ms)
    return retried, (_answer(key, retried, request, PlanVerdict.RESUMED),)


def _frozen(
    commit: Commit, request: PlanRequest, verdict: PlanVerdict, at_ms: int
) -> tuple[Commit, tuple[Emit, ...]]:
    plan = commit.plan
    evidence = EvidenceSnapshot(
        commit_key=plan.commit_key,
        plan_hash=plan.plan_hash,
        evidence_hash=plan.evidence_hash,
        evidence_ref=plan.evidence_ref,
        frozen_at_ms=at_ms,
    )
    return commit, (
        Emit(Topic.EVIDENCE, plan.commit_key, evidence),
        _answer(plan.commit_key, commit, request, verdict),
    )


def _answer(
    key: str,
    commit: Commit | None,
    request: PlanRequest,
    verdict: PlanVerdict,
    reason: str = "",
) -> Emit:
    answer = PlanAnswer(
        request_id=request.request_id,
        commit_key=key,
        verdict=verdict,
        reason=reason,
        round=0 if commit is None else commit.head.round,
        deadline_at_ms=0 if commit is None else commit.head.answer_by_ms,
        plan=None if commit is None else commit.plan,
        receipt=None if commit is None else commit.receipt,
    )
    return Emit(Topic.PLANS, key, answer)
