"""Golden bytes: one record of every topic as each release wrote it, kept for ever.

`write_missing(folder)` made `v1/`: for every topic `<topic>.bin` (the bare Avro value) and
`<topic>.json` (the record it must be read as). Before a release that changes a schema, copy the
schema to `schemas/released/<topic>/vN.avsc`, extend the samples, and call it once with the new
folder. It writes only files that do not exist: recorded bytes are added to, never edited.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tallystick.codec_avro import AvroForms
from tallystick.keys import intent_id
from tallystick.records import (
    Attempt,
    AttemptOutcome,
    AttemptPhase,
    DeadLetter,
    Effect,
    EffectStatus,
    ErrorClass,
    EvidenceKind,
    EvidenceSnapshot,
    FoundItem,
    Intent,
    ItemStatus,
    Mutation,
    MutationPhase,
    PartialItem,
    PartialReason,
    PartialSuccess,
    PlanAnswer,
    PlanRequest,
    PlanVerdict,
    Readback,
    ReadbackRequest,
    Receipt,
    ReceiptItem,
    Record,
    Resolution,
    ResolutionVerdict,
    Tick,
    UnplannedItem,
    Verification,
    VerifiedItem,
    WantedItem,
)
from tallystick.topics import Topic
from tests.keys.samples import plan_of

FOLDER = Path(__file__).parent
AT_MS = 1_764_547_200_000

PLAN = plan_of(evidence_ref="s3://evidence/suite-v7")
FIRST, SECOND = PLAN.items
INTENTS = tuple(
    intent_id(PLAN.commit_key, PLAN.plan_hash, item.tool, item.identity) for item in PLAN.items
)
STRANGER = UnplannedItem(identity="TC-9 ü", target_ref="9")

RECEIPT = Receipt(
    receipt_id="a" * 64,
    commit_key=PLAN.commit_key,
    plan_hash=PLAN.plan_hash,
    contract_name=PLAN.contract.name,
    contract_version=PLAN.contract.version,
    contract_hash=PLAN.contract.hash,
    module=PLAN.module,
    session_id="session-1",
    run_id=None,
    round=2,
    items=tuple(
        ReceiptItem(
            tool=item.tool,
            identity=item.identity,
            payload_hash=item.payload_hash,
            intent_id=intent,
            status=status,
            attempts=1,
            evidence=EvidenceKind.READBACK,
            evidence_id="read-3",
            found_digest="d" * 64,
            target_refs=("17",),
        )
        for item, intent, status in zip(
            PLAN.items, INTENTS, (ItemStatus.APPLIED, ItemStatus.EXISTED_BEFORE), strict=True
        )
    ),
    unplanned=(STRANGER,),
    planned_count=2,
    verified_count=2,
    frozen_at_ms=AT_MS,
    issued_at_ms=AT_MS + 62,
)

SAMPLES: dict[Topic, Record] = {
    Topic.PLAN_REQUESTS: PlanRequest(
        request_id="request-1",
        session_id="session-1",
        run_id=None,
        supersedes=None,
        commit_within_ms=60_000,
        plan=PLAN,
    ),
    Topic.ATTEMPTS: Attempt(
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        intent_id=INTENTS[0],
        attempt=2,
        phase=AttemptPhase.SETTLED,
        outcome=AttemptOutcome.NOT_EXECUTED,
        error_class=ErrorClass.TRANSIENT,
        code="429",
        detail="too many requests",
        retry_after_ms=1_500,
        target_ref=None,
        dispatcher="dispatcher-1",
        elapsed_ms=7,
    ),
    Topic.READBACKS: Readback(
        request_id="read-3",
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        found=(
            FoundItem(
                tool=FIRST.tool,
                identity=FIRST.identity,
                copies=2,
                planned_digest="b" * 64,
                found_digest="d" * 64,
                differing=("title", "steps"),
                target_refs=("17", "18"),
                error="",
            ),
        ),
        unplanned=(STRANGER,),
        error="",
        detail="",
        reader="reader-1",
        elapsed_ms=12,
    ),
    Topic.RESOLUTIONS: Resolution(
        resolution_id="resolution-1",
        commit_key=PLAN.commit_key,
        intent_id=INTENTS[1],
        verdict=ResolutionVerdict.ABSENT,
        evidence="ticket 4711: the payment house has no such order",
        resolved_by="ops@example.org",
    ),
    Topic.COMMITS_TICKS: Tick(partition=11, at_ms=AT_MS),
    Topic.EVIDENCE: EvidenceSnapshot(
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        evidence_hash=PLAN.evidence_hash,
        evidence_ref=PLAN.evidence_ref,
        frozen_at_ms=AT_MS,
    ),
    Topic.PLANS: PlanAnswer(
        request_id="request-2",
        commit_key=PLAN.commit_key,
        verdict=PlanVerdict.COMPLETED,
        reason="",
        round=2,
        deadline_at_ms=AT_MS + 60_000,
        plan=PLAN,
        receipt=RECEIPT,
    ),
    Topic.INTENTS: Intent(
        intent_id=INTENTS[1],
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        contract_name=PLAN.contract.name,
        contract_hash=PLAN.contract.hash,
        policy_hash="e" * 64,
        module=PLAN.module,
        tool=SECOND.tool,
        identity=SECOND.identity,
        payload=SECOND.payload,
        round=1,
        attempt=1,
        expires_at_ms=AT_MS + 58_000,
    ),
    Topic.READBACK_REQUESTS: ReadbackRequest(
        request_id="read-3",
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        contract_name=PLAN.contract.name,
        contract_hash=PLAN.contract.hash,
        module=PLAN.module,
        round=2,
        try_number=1,
        items=tuple(
            WantedItem(
                tool=item.tool, identity=item.identity, intent_id=intent, payload=item.payload
            )
            for item, intent in zip(PLAN.items, INTENTS, strict=True)
        ),
    ),
    Topic.MUTATIONS: Mutation(
        scope="cases",
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        phase=MutationPhase.OPENED,
        unsettled=2,
        at_ms=AT_MS,
    ),
    Topic.VERIFICATIONS: Verification(
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        request_id="read-3",
        round=2,
        items=(
            VerifiedItem(
                tool=FIRST.tool,
                identity=FIRST.identity,
                status=ItemStatus.DUPLICATE,
                found_digest="d" * 64,
            ),
        ),
        unplanned=(),
        planned_count=2,
        verified_count=1,
        verified_at_ms=AT_MS + 40,
    ),
    Topic.RECEIPTS: RECEIPT,
    Topic.PARTIALS: PartialSuccess(
        partial_id="f" * 64,
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        contract_name=PLAN.contract.name,
        contract_version=PLAN.contract.version,
        contract_hash=PLAN.contract.hash,
        module=PLAN.module,
        session_id=None,
        run_id="run-1",
        round=1,
        reason=PartialReason.CONTENT_DIFFERS,
        items=(
            PartialItem(
                tool=FIRST.tool,
                identity=FIRST.identity,
                payload_hash=FIRST.payload_hash,
                intent_id=INTENTS[0],
                status=ItemStatus.DIFFERENT,
                attempts=3,
                code="",
                detail="",
                differing=("title",),
                target_refs=("17",),
                compensation="delete_case",
            ),
        ),
        unplanned=(STRANGER,),
        planned_count=2,
        verified_count=1,
        written_count=2,
        missing_count=0,
        different_count=1,
        duplicate_count=0,
        unknown_count=0,
        rejected_count=0,
        frozen_at_ms=AT_MS,
        issued_at_ms=AT_MS + 900,
    ),
    Topic.EFFECTS: Effect(
        session_id="session-1",
        run_id="run-1",
        commit_key=PLAN.commit_key,
        plan_hash=PLAN.plan_hash,
        intent_id=INTENTS[0],
        tool=FIRST.tool,
        identity=FIRST.identity,
        attempt=1,
        status=EffectStatus.EXISTED_BEFORE,
        at_ms=AT_MS,
    ),
    Topic.DEAD_LETTERS: DeadLetter(
        stage="commits",
        source_topic="attempts",
        source_partition=3,
        source_offset=2**40,
        key=b"release-42",
        value=b"\x00\xff not avro",
        code="undecodable",
        reason="header tally_schema is missing",
    ),
}


def write_missing(folder: Path) -> list[str]:
    """Record every sample that `folder` does not hold yet; returns the topics it added."""
    forms = AvroForms()
    folder.mkdir(parents=True, exist_ok=True)
    added = []
    for topic, record in SAMPLES.items():
        target = folder / f"{topic}.bin"
        if target.exists():
            continue
        target.write_bytes(forms.write(topic, record))
        text = msgspec.json.format(msgspec.json.encode(record), indent=1)
        target.with_suffix(".json").write_bytes(text + b"\n")
        added.append(str(topic))
    return added
