"""Plans: what a plan file may say, what a built plan holds, and what the ledger distrusts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.canonical import canonical_text
from tallystick.codec import FingerprintCodec
from tallystick.errors import PlanError
from tallystick.keys import IDENTITY_BYTES_MAX, payload_hash, plan_hash
from tallystick.plans import (
    ITEMS_MAX,
    PLAN_BYTES_MAX,
    DraftItem,
    PlanFault,
    build_plan,
    check_plan,
    parse_plan,
    plan_bytes,
    plan_from,
)
from tallystick.records import Plan, PlanRequest
from tallystick.topics import Topic
from tests.keys.samples import CONTRACT, ITEMS, POLICY, plan_of
from tests.schemas.strategies import any_record

DOCUMENT: dict[str, Any] = {
    "commit_key": "release-42",
    "module": "payments",
    "tool": "create_case",
    "evidence": {"suite": "v7"},
    "items": [dict(item) for item in ITEMS],
}


POLICIES = {POLICY.tool: POLICY}


def changed(**fields: Any) -> str:
    """The document as text with fields changed, or removed where the value is `...`."""
    merged = {**DOCUMENT, **fields}
    return json.dumps({name: value for name, value in merged.items() if value is not ...})


def test_a_plan_file_becomes_the_plan_that_the_api_builds() -> None:
    document = parse_plan(json.dumps(DOCUMENT), where="plan.json")
    assert plan_from(document, contract=CONTRACT, policies=POLICIES) == plan_of()
    assert check_plan(plan_of()) == ""


def test_payloads_are_canonical_and_hashed() -> None:
    item = plan_of().items[1]
    assert item.payload == '{"priority":1,"title":"Log out"}'
    assert item.payload_hash == payload_hash(item.payload)


def test_a_plan_carries_the_policies_it_uses_and_no_others() -> None:
    other = msgspec.structs.replace(POLICY, tool="delete_case")
    plan = plan_of(policies={"delete_case": other, "create_case": POLICY}, tool="create_case")
    assert plan.policies == (POLICY,)


def test_an_item_may_name_its_own_tool_and_share_an_identity_across_tools() -> None:
    other = msgspec.structs.replace(POLICY, tool="tag_case")
    items = [
        {"identity": "TC-1", "payload": {}},
        {"identity": "TC-1", "payload": {}, "tool": "tag_case"},
    ]
    plan = plan_of(items, policies={"create_case": POLICY, "tag_case": other}, tool="create_case")
    assert [item.tool for item in plan.items] == ["create_case", "tag_case"]
    assert check_plan(plan) == ""


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("create ten cases, please", "line 1, column 1", "not JSON"),
        ("[]", "$", "an array is not an object"),
        (changed(evidense={}), "$", "unknown field 'evidense' (did you mean 'evidence'?)"),
        (changed(commit_key=...), "$", "field 'commit_key' is missing"),
        (changed(commit_key=""), "$.commit_key", "commit_key is empty"),
        (changed(commit_key=7), "$.commit_key", "is int, not text"),
        (changed(commit_key="k" * 257), "$.commit_key", "has 257 bytes, more than 256"),
        (changed(module=""), "$.module", "module is empty"),
        (changed(evidence_ref="x" * 3_000), "$.evidence_ref", "more than 2048"),
        (changed(items={}), "$.items", "items is an object, not an array"),
        (changed(items=[]), "$.items", "plan has no items"),
        (changed(items=[{"identity": "a", "payload": {}}] * 2), "$.items[1].identity", "twice"),
        (changed(items=["a"]), "$.items[0]", "a string is not an object"),
        (changed(items=[{"identity": "a"}]), "$.items[0]", "field 'payload' is missing"),
        (changed(items=[{"identity": "", "payload": {}}]), "$.items[0].identity", "is empty"),
        (changed(items=[{"identity": "a", "payload": "x"}]), "$.items[0].payload", "a string"),
        (
            changed(items=[{"identity": "a", "payload": {}, "tol": "x"}]),
            "$.items[0]",
            "did you mean 'tool'?",
        ),
        (
            changed(items=[{"identity": "a", "payload": {"x": float("nan")}}]),
            "$.items[0].payload.x",
            "NaN is not a JSON number",
        ),
        (
            changed(items=[{"identity": "a", "payload": {"t": "\ud800"}}]),
            "$.items[0].payload.t",
            "lone surrogate",
        ),
        (
            changed(items=[{"identity": str(i), "payload": {}} for i in range(ITEMS_MAX + 1)]),
            "$.items",
            f"more than {ITEMS_MAX}",
        ),
        (" " * 8_000_001, "$", "more than 8000000 bytes"),
    ],
)
def test_a_bad_plan_file_is_refused_in_one_line_with_its_place(
    text: str, where: str, says: str
) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, where="plan.json")
    assert caught.value.where == f"plan.json: {where}"
    assert says in str(caught.value)
    assert caught.value.fix
    assert "\n" not in str(caught.value)


def test_what_a_plan_file_cannot_mean_is_refused_with_the_files_name() -> None:
    document = parse_plan(changed(tool="drop_case"), where="plan.json")
    with pytest.raises(PlanError, match="has no tool 'drop_case'") as caught:
        plan_from(document, contract=CONTRACT, policies=POLICIES)
    assert caught.value.where == "plan.json: $.items[0].tool"


@pytest.mark.parametrize(
    ("changes", "where", "says"),
    [
        ({"items": []}, "$.items", "plan has no items"),
        ({"items": [ITEMS[0], ITEMS[0]]}, "$.items[1].identity", "planned twice"),
        ({"commit_key": ""}, "$.commit_key", "is empty"),
        ({"module": "\ud800"}, "$.module", "lone surrogate"),
        ({"tool": "drop_case"}, "$.items[0].tool", "has no tool 'drop_case'"),
        ({"policies": {}}, "$.items[0]", "names no tool"),
        ({"evidence": {"x": [b""]}}, "$.evidence.x[0]", "bytes has no JSON form"),
        (
            {"items": [DraftItem(identity="a", payload={"x": object()})]},
            "$.items[0].payload.x",
            "object has no JSON form",
        ),
        ({"items": [DraftItem(identity="a", payload=[1])]}, "$.items[0].payload", "not an object"),
        ({"items": [{"identity": "a", "payload": {}, "x": 1}]}, "$.items[0]", "unknown field"),
        ({"items": ["a"]}, "$.items[0]", "a string is not an object"),
        (
            {"items": [{"identity": "a", "payload": {"x": "y" * PLAN_BYTES_MAX}}]},
            "$.items",
            f"more than {PLAN_BYTES_MAX}",
        ),
        (
            {"policies": {"create_case": msgspec.structs.replace(POLICY, attempts_max=0)}},
            "contract",
            "policy_out_of_range",
        ),
        (
            {"contract": msgspec.structs.replace(CONTRACT, hash="abc")},
            "contract",
            "contract_malformed",
        ),
    ],
)
def test_what_the_ledger_would_refuse_is_refused_before_it_is_sent(
    changes: dict[str, Any], where: str, says: str
) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(**changes)
    assert caught.value.where == where
    assert says in str(caught.value)


def with_item(plan: Plan, **fields: Any) -> Plan:
    first = msgspec.structs.replace(plan.items[0], **fields)
    return msgspec.structs.replace(plan, items=(first, *plan.items[1:]))


def rehashed(plan: Plan) -> Plan:
    """The same plan with a plan hash that fits, as a forger would send it."""
    fresh = plan_hash(
        evidence_hash=plan.evidence_hash,
        contract=plan.contract,
        module=plan.module,
        items=plan.items,
    )
    return msgspec.structs.replace(plan, plan_hash=fresh)


def with_policy(plan: Plan, **fields: Any) -> Plan:
    return msgspec.structs.replace(
        plan, policies=(msgspec.structs.replace(plan.policies[0], **fields),)
    )


GOOD = plan_of()
SECOND = msgspec.structs.replace(POLICY, tool="tag_case")
BROKEN = [
    (PlanFault.COMMIT_KEY_MALFORMED, msgspec.structs.replace(GOOD, commit_key="")),
    (PlanFault.COMMIT_KEY_MALFORMED, msgspec.structs.replace(GOOD, commit_key="k" * 257)),
    (PlanFault.MODULE_MALFORMED, msgspec.structs.replace(GOOD, module="")),
    (
        PlanFault.CONTRACT_MALFORMED,
        msgspec.structs.replace(GOOD, contract=msgspec.structs.replace(CONTRACT, hash="C" * 64)),
    ),
    (PlanFault.EVIDENCE_MALFORMED, msgspec.structs.replace(GOOD, evidence_hash="e" * 63)),
    (PlanFault.EVIDENCE_MALFORMED, msgspec.structs.replace(GOOD, evidence_ref="")),
    (PlanFault.ITEMS_EMPTY, msgspec.structs.replace(GOOD, items=())),
    (PlanFault.ITEMS_TOO_MANY, msgspec.structs.replace(GOOD, items=GOOD.items[:1] * 2_001)),
    (
        PlanFault.PLAN_TOO_LARGE,
        with_item(GOOD, payload=canonical_text({"x": "y" * PLAN_BYTES_MAX})),
    ),
    (PlanFault.POLICY_REPEATED, msgspec.structs.replace(GOOD, policies=(POLICY, POLICY))),
    (PlanFault.POLICY_MISSING, msgspec.structs.replace(GOOD, policies=())),
    (PlanFault.POLICY_UNUSED, msgspec.structs.replace(GOOD, policies=(POLICY, SECOND))),
    (PlanFault.POLICY_OUT_OF_RANGE, with_policy(GOOD, attempts_max=0)),
    (PlanFault.POLICY_OUT_OF_RANGE, with_policy(GOOD, attempts_max=1_001)),
    (PlanFault.POLICY_OUT_OF_RANGE, with_policy(GOOD, in_flight_ms=-1)),
    (PlanFault.POLICY_OUT_OF_RANGE, with_policy(GOOD, visibility_lag_ms=2**62)),
    (PlanFault.POLICY_OUT_OF_RANGE, with_policy(GOOD, call_timeout_ms=0)),
    (PlanFault.POLICY_OUT_OF_RANGE, with_policy(GOOD, backoff_ms_max=49)),
    (PlanFault.POLICY_OUT_OF_RANGE, with_policy(GOOD, scope="")),
    (PlanFault.IDENTITY_MALFORMED, rehashed(with_item(GOOD, identity=""))),
    (
        PlanFault.IDENTITY_MALFORMED,
        rehashed(with_item(GOOD, identity="x" * (IDENTITY_BYTES_MAX + 1))),
    ),
    (PlanFault.IDENTITY_REPEATED, rehashed(with_item(GOOD, identity="TC-2"))),
    (PlanFault.PAYLOAD_NOT_CANONICAL, rehashed(with_item(GOOD, payload='{"a": 1}'))),
    (PlanFault.PAYLOAD_NOT_CANONICAL, rehashed(with_item(GOOD, payload='{"a":1.0}'))),
    (PlanFault.PAYLOAD_NOT_CANONICAL, rehashed(with_item(GOOD, payload='{"a":1,"a":1}'))),
    (PlanFault.PAYLOAD_NOT_CANONICAL, rehashed(with_item(GOOD, payload="[]"))),
    (PlanFault.PAYLOAD_NOT_CANONICAL, rehashed(with_item(GOOD, payload="prose"))),
    (PlanFault.PAYLOAD_HASH_DIFFERS, rehashed(with_item(GOOD, payload='{"a":1}'))),
    (PlanFault.PLAN_HASH_DIFFERS, msgspec.structs.replace(GOOD, module="billing")),
    (PlanFault.PLAN_HASH_DIFFERS, msgspec.structs.replace(GOOD, items=GOOD.items[::-1])),
]


@pytest.mark.parametrize(("fault", "plan"), BROKEN, ids=lambda value: str(value)[:24])
def test_the_ledger_names_the_rule_that_a_hostile_plan_breaks(fault: PlanFault, plan: Plan) -> None:
    assert check_plan(plan) == fault


@given(any_record(Plan))
def test_a_hostile_plan_is_an_answer_and_never_an_error(plan: Plan) -> None:
    assert check_plan(plan) in set(PlanFault)


@pytest.mark.parametrize("name", ["commit_key", "module", "evidence_hash", "evidence_ref"])
def test_text_that_utf_8_cannot_carry_is_an_answer_too(name: str) -> None:
    assert check_plan(msgspec.structs.replace(GOOD, **{name: "\ud800"})) in set(PlanFault)
    for field in ("tool", "identity", "payload", "payload_hash"):
        assert check_plan(with_item(GOOD, **{field: "\ud800"})) in set(PlanFault)
    for field in ("tool", "scope"):
        assert check_plan(with_policy(GOOD, **{field: "\ud800"})) in set(PlanFault)


def test_every_rule_is_broken_by_some_plan_above() -> None:
    assert {fault for fault, _ in BROKEN} == set(PlanFault)


def test_of_several_broken_rules_the_first_is_named() -> None:
    plan = with_policy(with_item(GOOD, identity=""), attempts_max=0)
    assert check_plan(plan) == PlanFault.POLICY_OUT_OF_RANGE
    assert check_plan(msgspec.structs.replace(plan, commit_key="")) == (
        PlanFault.COMMIT_KEY_MALFORMED
    )


def test_the_docs_list_the_rules_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert [row for row in rows if row in set(PlanFault)] == list(PlanFault)


NAMES = st.text(min_size=1, max_size=8)
PAYLOADS = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(), max_size=4)


@given(st.dictionaries(NAMES, PAYLOADS, min_size=1, max_size=5), NAMES, NAMES, st.none() | NAMES)
def test_whatever_can_be_built_is_accepted(
    items: dict[str, Any], commit_key: str, module: str, evidence_ref: str | None
) -> None:
    plan = build_plan(
        commit_key=commit_key,
        items=[{"identity": name, "payload": payload} for name, payload in items.items()],
        contract=CONTRACT,
        policies={POLICY.tool: POLICY},
        module=module,
        evidence_ref=evidence_ref,
    )
    assert check_plan(plan) == ""


def test_the_largest_plan_fits_the_smallest_message_limit() -> None:
    room = PLAN_BYTES_MAX // ITEMS_MAX - 200
    plan = plan_of(
        {"identity": f"case-{i}", "payload": {"x": "y" * room}} for i in range(ITEMS_MAX)
    )
    request = PlanRequest(
        request_id="r" * 32,
        session_id="s" * 64,
        run_id="r" * 64,
        supersedes="p" * 64,
        commit_within_ms=60_000,
        plan=plan,
    )
    value, _ = FingerprintCodec().encode(Topic.PLAN_REQUESTS, request)
    assert len(value) <= plan_bytes(plan) + 400 <= 1_000_000
