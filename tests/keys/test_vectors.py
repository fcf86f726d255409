"""The byte-exact vectors that clients in other languages use: this client must agree first."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tallystick.canonical import canonical, parse_json
from tallystick.errors import CanonicalError
from tallystick.keys import (
    CALL_KEY_RULE,
    EVIDENCE_HASH_RULE,
    INTENT_ID_RULE,
    PLAN_HASH_RULE,
    call_key,
    intent_id,
    policy_hash,
)
from tallystick.plans import build_plan, parse_plan
from tallystick.records import ContractRef, ToolPolicy
from tallystick.schemas import SCHEMA_TOPICS, released_texts, schema_id

FOLDER = Path(__file__).parents[1] / "vectors"


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return loaded


def cases(name: str) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in load(name)["vectors"]]


@pytest.mark.parametrize("vector", cases("canonical.json"))
def test_canonical_bytes_and_their_hash(vector: dict[str, Any]) -> None:
    written = canonical(parse_json(vector["json"]))
    assert written.decode() == vector["canonical"]
    assert hashlib.sha256(written).hexdigest() == vector["sha256"]


@pytest.mark.parametrize("vector", cases("refused.json"))
def test_refused_texts(vector: dict[str, Any]) -> None:
    with pytest.raises(CanonicalError) as caught:
        parse_json(vector["json"])
    assert (caught.value.code, caught.value.where) == (vector["code"], vector["where"])


@pytest.mark.parametrize("vector", cases("call_key.json"))
def test_call_keys(vector: dict[str, Any]) -> None:
    assert load("call_key.json")["rule"] == CALL_KEY_RULE
    key = call_key(
        vector["tool"],
        parse_json(vector["arguments"]),
        defaults=vector["defaults"],
        ignored=vector["ignored"],
        run_scope=vector["run_scope"],
    )
    assert key == vector["call_key"]


def policies() -> dict[str, ToolPolicy]:
    rows = load("plan.json")["policies"]
    found = [msgspec.convert(row["policy"], ToolPolicy) for row in rows]
    assert [policy_hash(policy) for policy in found] == [row["policy_hash"] for row in rows]
    return {policy.tool: policy for policy in found}


@pytest.mark.parametrize("vector", cases("plan.json"))
def test_plan_hashes_and_intent_ids(vector: dict[str, Any]) -> None:
    file = load("plan.json")
    assert file["rules"] == {
        "plan_hash": PLAN_HASH_RULE,
        "intent_id": INTENT_ID_RULE,
        "evidence_hash": EVIDENCE_HASH_RULE,
    }
    document = parse_plan(vector["plan"])
    plan = build_plan(
        commit_key=document.commit_key,
        items=document.items,
        contract=msgspec.convert(file["contract"], ContractRef),
        policies=policies(),
        module=document.module,
        evidence=document.evidence,
        evidence_ref=document.evidence_ref,
        tool=document.tool or "create_case",
    )
    assert plan.evidence_hash == vector["evidence_hash"]
    assert plan.plan_hash == vector["plan_hash"]
    rows = [
        {
            **msgspec.to_builtins(item),
            "intent_id": intent_id(plan.commit_key, plan.plan_hash, item.tool, item.identity),
        }
        for item in plan.items
    ]
    assert rows == vector["items"]


def test_schema_fingerprints() -> None:
    known = {
        vector["schema_file"]: vector["fingerprint"]
        for vector in load("schema_fingerprints.json")["vectors"]
        if "schema_file" in vector
    }
    released = {
        f"schemas/released/{topic}/{version}.avsc": schema_id(text)
        for topic in SCHEMA_TOPICS
        for version, text in released_texts(topic)
    }
    assert known == released
    # The example of the Avro specification's own reference implementation.
    assert schema_id('"null"') == "63dd24e7cc258f8a"
