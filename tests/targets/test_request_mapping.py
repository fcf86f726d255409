"""An intent becomes exactly one request: what was planned, the pinned key, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from connectors.targets.mapping import Unsendable, WriteMapping, WriteRequest
from tallystick.canonical import canonical_text
from tallystick.contracts import parse_contract
from tests.targets.wire import document, intent

KEY = intent().intent_id


def request(identity: str = "c1", payload: Any = None, **tool: Any) -> WriteRequest:
    """The request for one item under a tool with these parts."""
    text = '{"title":"one"}' if payload is None else canonical_text(payload)
    mapping = WriteMapping("http://h/base", parse_contract(document(**tool)).tools["create"])
    return mapping.request(intent(identity, text))


def sent(**case: Any) -> Any:
    """The body of that request as values."""
    return json.loads(request(**case).body or b"null")


def test_without_a_template_the_planned_bytes_go_out_as_they_are() -> None:
    text = '{"big":123456789012345678901234567890,"e":"\\u00e9","n":1.5}'
    mapping = WriteMapping("http://h", parse_contract(document()).tools["create"])

    assert mapping.request(intent(payload=text)).body == text.encode()


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.none()))
def test_a_key_field_changes_nothing_but_itself(payload: dict[str, Any]) -> None:
    try:
        text = canonical_text(payload)
    except ValueError:
        return
    tool = parse_contract(document(key={"style": "field", "name": "request_id"})).tools["create"]

    body = WriteMapping("http://h", tool).request(intent(payload=text)).body

    assert json.loads(body or b"") == {**payload, "request_id": KEY}


def test_the_pinned_key_overrides_one_that_the_model_supplied() -> None:
    field = {"style": "field", "name": "key"}

    assert sent(payload={"key": "mine", "title": "t"}, key=field) == {"key": KEY, "title": "t"}


def test_a_key_field_may_lie_deeper() -> None:
    deep = {"style": "field", "name": "/meta/key"}

    assert sent(payload={"meta": {"a": 1}}, key=deep) == {"meta": {"a": 1, "key": KEY}}
    assert sent(payload={}, key=deep) == {"meta": {"key": KEY}}


def test_a_header_key_goes_into_the_header_alone() -> None:
    made = request(key={"style": "header", "name": "Idempotency-Key"})

    assert made.headers["Idempotency-Key"] == KEY
    assert KEY.encode() not in (made.body or b"")


@pytest.mark.parametrize("style", ["none", "natural"])
def test_other_styles_send_no_key(style: str) -> None:
    write = {"method": "PUT", "path": "/x/{identity}"}

    made = request(key={"style": style}, write=write)

    assert KEY not in f"{made}"


PATHS = [
    ("/m/{module}/{identity}", "c1", "/base/m/checkout/c1"),
    ("/m/{identity}", "a/b", "/base/m/a%2Fb"),
    ("/m/{identity}", "a b?c#d%e", "/base/m/a%20b%3Fc%23d%25e"),
    ("/m/{identity}", "é", "/base/m/%C3%A9"),
    ("/m/{identity}", "..x", "/base/m/..x"),
    ("/m?q={identity}", "a&b=c", "/base/m?q=a%26b%3Dc"),
    ("/m/{/title}", "c1", "/base/m/one"),
    ("/m/{{x}}", "c1", "/base/m/{x}"),
]


@pytest.mark.parametrize(("path", "identity", "expected"), PATHS)
def test_what_fills_a_path_stays_one_step_of_it(path: str, identity: str, expected: str) -> None:
    made = request(identity, write={"path": path})

    assert made.url == URL("http://h" + expected, encoded=True)
    assert made.url.raw_path_qs == expected


BODY = {
    "id": "{identity}",
    "label": "case {identity} of {module}",
    "count": "{/n}",
    "note": "{/note}",
    "all": "{payload}",
    "fixed": [1, None, True, "{tool}"],
    "key": "{intent_id}",
}


def test_a_body_template_keeps_types_and_leaves_out_what_is_absent() -> None:
    payload = {"n": 10**30}

    body = sent(payload=payload, write={"path": "/m", "body": BODY})

    assert body == {
        "id": "c1",
        "label": "case c1 of checkout",
        "count": 10**30,
        "all": payload,
        "fixed": [1, None, True, "create"],
        "key": KEY,
    }


def test_null_in_the_payload_is_sent_as_null() -> None:
    assert sent(payload={"n": None}, write={"path": "/m", "body": {"n": "{/n}"}}) == {"n": None}


UNSENDABLE: list[tuple[dict[str, Any], str]] = [
    ({"identity": "..", "write": {"path": "/m/{identity}"}}, "not_addressable"),
    ({"identity": ".", "write": {"path": "/m/{identity}"}}, "not_addressable"),
    ({"payload": {"t": ""}, "write": {"path": "/m/{/t}"}}, "not_addressable"),
    ({"write": {"path": "/m/{/gone}"}}, "payload_field_missing"),
    ({"payload": {"t": None}, "write": {"path": "/m/{/t}"}}, "not_text"),
    ({"payload": {"t": [1]}, "write": {"path": "/m/{/t}"}}, "not_text"),
    ({"write": {"path": "/m", "body": {"x": "a {/gone}"}}}, "payload_field_missing"),
    ({"write": {"path": "/m", "body": {"x": ["{/gone}"]}}}, "payload_field_missing"),
    ({"identity": "a\r\nX-Evil: 1", "write": {"path": "/m", "headers": {"X": "{identity}"}}},
     "not_a_header"),
    ({"identity": "é", "write": {"path": "/m", "headers": {"X": "{identity}"}}}, "not_a_header"),
    ({"payload": [1], "key": {"style": "field", "name": "k"}}, "no_place_for_key"),
    ({"payload": {"a": 1}, "key": {"style": "field", "name": "/a/k"}}, "no_place_for_key"),
    ({"payload": {"other": 1}, "readback": {"kind": "strong", "path": "/m/{identity}",
                                            "compare": ["title"]}}, "nothing_to_compare"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "code"), UNSENDABLE)
def test_what_cannot_be_sent_is_refused_before_anything_leaves(
    case: dict[str, Any], code: str
) -> None:
    with pytest.raises(Unsendable) as caught:
        request(**case)

    assert caught.value.code == code
    assert caught.value.detail


def test_a_delete_sends_no_body() -> None:
    assert request(write={"method": "DELETE", "path": "/m/{identity}"}).body is None
