"""Which calls, items, plans and intents are the same, and which only look so."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.canonical import canonical_text, parse_json
from tallystick.codec import FingerprintCodec
from tallystick.errors import CallerError, CanonicalError, PlanError
from tallystick.keys import (
    IDENTITY_BYTES_MAX,
    call_key,
    evidence_hash,
    intent_id,
    item_identity,
    payload_hash,
    plan_hash,
    policy_hash,
)
from tallystick.records import ContractRef, PlanItem, PlanRequest
from tallystick.topics import Topic
from tests.keys.samples import CONTRACT, POLICY, plan_of


def key_of(text: str, **options: Any) -> str:
    return call_key("search", parse_json(text), **options)


def test_case_43_argument_order_does_not_matter_and_array_order_does() -> None:
    assert key_of('{"a":1,"b":2}') == key_of('{"b":2,"a":1}')
    assert key_of('{"a":[1,2]}') != key_of('{"a":[2,1]}')


def test_case_44_one_is_one_in_every_notation() -> None:
    assert len({key_of(f'{{"n":{form}}}') for form in ("1", "1.0", "1e0", "10e-1")}) == 1
    assert call_key("search", {"n": 1}) == call_key("search", {"n": 1.0})


def test_case_46_integers_beyond_2_53_keep_every_digit_end_to_end() -> None:
    exact, near = 9007199254740993, 9007199254740992
    assert key_of(f'{{"id":{exact}}}') != key_of(f'{{"id":{near}}}')
    assert key_of(f'{{"id":{exact}}}') == key_of(f'{{"id":{exact}.0}}')
    plan = plan_of([{"identity": "a", "payload": parse_json(f'{{"id":{exact}}}')}])
    request = PlanRequest(
        request_id="r",
        session_id=None,
        run_id=None,
        supersedes=None,
        commit_within_ms=60_000,
        plan=plan,
    )
    codec = FingerprintCodec()
    value, headers = codec.encode(Topic.PLAN_REQUESTS, request)
    arrived = codec.decode(Topic.PLAN_REQUESTS, value, headers)
    assert isinstance(arrived, PlanRequest)
    assert parse_json(arrived.plan.items[0].payload) == {"id": exact}


def test_case_47_a_number_is_not_its_digits_as_text() -> None:
    assert key_of('{"n":1}') != key_of('{"n":"1"}')
    assert key_of('{"n":true}') != key_of('{"n":1}')
    assert key_of('{"n":null}') != key_of('{"n":"null"}')


def test_case_49_defaults_are_filled_first_and_null_is_not_absent() -> None:
    defaults = {"limit": 10, "tags": []}
    assert key_of('{"q":"x"}', defaults=defaults) == key_of(
        '{"q":"x","limit":10}', defaults=defaults
    )
    assert key_of('{"q":"x"}') != key_of('{"q":"x","limit":10}')
    assert key_of('{"q":"x","tags":null}', defaults=defaults) != key_of(
        '{"q":"x"}', defaults=defaults
    )
    assert key_of('{"q":"x","tags":null}') != key_of('{"q":"x","tags":[]}')
    assert key_of('{"q":null}') != key_of("{}")


def test_the_models_own_idempotency_key_is_no_part_of_the_call() -> None:
    ignored = frozenset({"idempotency_key"})
    first = key_of('{"q":"x","idempotency_key":"k1"}', ignored=ignored)
    assert first == key_of('{"q":"x","idempotency_key":"k2"}', ignored=ignored)
    assert first == key_of('{"q":"x"}', ignored=ignored)
    assert first != key_of('{"q":"x","idempotency_key":"k1"}')
    nested = '{"q":{"idempotency_key":"k1"}}'
    assert key_of(nested, ignored=ignored) == key_of(nested)


def test_tool_and_run_scope_are_part_of_the_call() -> None:
    assert call_key("a", {}) != call_key("b", {})
    assert call_key("a", {}, run_scope="run-1") != call_key("a", {}, run_scope="run-2")
    assert call_key("a", {}, run_scope="") != call_key("a", {})


def test_arguments_without_a_json_form_are_refused() -> None:
    with pytest.raises(CanonicalError, match="nan is not a JSON number"):
        call_key("a", {"n": float("nan")})
    with pytest.raises(CallerError, match="tool name is empty"):
        call_key("", {})


def test_identities_are_compared_byte_by_byte() -> None:
    composed, decomposed = "\u00e9", "e\u0301"
    assert item_identity(composed) == composed
    assert item_identity(" A ") == " A "
    assert intent_id("k", "p", "t", composed) != intent_id("k", "p", "t", decomposed)


@pytest.mark.parametrize(
    ("identity", "says"),
    [
        ("", "is empty"),
        (7, "is int, not text"),
        (None, "is NoneType, not text"),
        ("\ud800", "lone surrogate"),
        ("é" * (IDENTITY_BYTES_MAX // 2) + "x", f"more than {IDENTITY_BYTES_MAX}"),
    ],
)
def test_what_cannot_name_an_item_is_refused(identity: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says) as caught:
        item_identity(identity, where="$.items[3].identity")
    assert caught.value.where == "$.items[3].identity"


def test_the_longest_identity_is_taken() -> None:
    assert item_identity("é" * (IDENTITY_BYTES_MAX // 2))


def test_a_payload_hash_is_sha_256_of_its_text() -> None:
    text = canonical_text({"b": 1, "a": "ü"})
    assert payload_hash(text) == hashlib.sha256(text.encode()).hexdigest()


def test_a_policy_hash_moves_with_every_field() -> None:
    seen = {policy_hash(POLICY)}
    for name, value in msgspec.to_builtins(POLICY).items():
        changed = "x" if value is None or isinstance(value, str) else int(value) + 1
        seen.add(policy_hash(msgspec.structs.replace(POLICY, **{name: changed})))
    assert len(seen) == 1 + len(POLICY.__struct_fields__)


def test_evidence_counts_by_content_before_reference() -> None:
    assert evidence_hash({"v": 1}, "s3://a") == evidence_hash({"v": 1.0}, "s3://b")
    assert len({evidence_hash("x"), evidence_hash(None, "x"), evidence_hash(None)}) == 3


ITEMS = tuple(
    PlanItem(tool="create", identity=name, payload="{}", payload_hash=payload_hash("{}"))
    for name in ("a", "b", "c")
)


def hash_of(
    items: tuple[PlanItem, ...] = ITEMS,
    contract: ContractRef = CONTRACT,
    module: str = "m",
    evidence: str = "e" * 64,
) -> str:
    return plan_hash(evidence_hash=evidence, contract=contract, module=module, items=items)


@given(st.permutations(ITEMS))
def test_the_order_of_items_is_part_of_the_plan(items: list[PlanItem]) -> None:
    assert (hash_of(tuple(items)) == hash_of()) is (tuple(items) == ITEMS)


@given(
    st.integers(0, 2), st.sampled_from(["tool", "identity", "payload_hash"]), st.text(max_size=9)
)
def test_every_item_field_is_part_of_the_plan(index: int, name: str, value: str) -> None:
    changed = msgspec.structs.replace(ITEMS[index], **{name: value})
    items = (*ITEMS[:index], changed, *ITEMS[index + 1 :])
    assert (hash_of(items) == hash_of()) is (changed == ITEMS[index])


def test_evidence_contract_module_and_count_are_part_of_the_plan() -> None:
    other = [
        hash_of(evidence="f" * 64),
        hash_of(module="n"),
        hash_of(items=ITEMS[:2]),
        *(
            hash_of(contract=msgspec.structs.replace(CONTRACT, **{name: "other"}))
            for name in CONTRACT.__struct_fields__
        ),
    ]
    assert len({hash_of(), *other}) == len(other) + 1


def test_fields_cannot_flow_into_each_other() -> None:
    assert intent_id("ab", "c", "t", "i") != intent_id("a", "bc", "t", "i")
    assert intent_id("k", "p", "ti", "") != intent_id("k", "p", "t", "i")


def test_equal_work_under_two_commit_keys_is_meant_twice() -> None:
    assert intent_id("reminder-1", "p", "send", "a") != intent_id("reminder-2", "p", "send", "a")


def test_every_hash_is_lower_case_hex() -> None:
    hashes = [call_key("t", {}), hash_of(), intent_id("k", "p", "t", "i"), policy_hash(POLICY)]
    assert all(len(text) == 64 and set(text) <= set("0123456789abcdef") for text in hashes)
